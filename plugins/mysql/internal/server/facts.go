package server

import (
	"context"
	"fmt"
	"strings"
)

// Variables returns global variables by name, in lower case. Those that the server
// does not have are left out.
func (c *Conn) Variables(ctx context.Context, names ...string) (map[string]string, error) {
	res, err := c.Query(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('"+strings.Join(names, "','")+"')")
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(res.Rows))
	for _, r := range res.Rows {
		out[strings.ToLower(r.Text(0))] = r.Text(1)
	}
	return out, nil
}

// Identity tells servers apart: the server_uuid of MySQL. MariaDB has none, so its
// server_id stands in, with host and port as it sees them.
func (c *Conn) Identity(ctx context.Context) (string, error) {
	v, err := c.Variables(ctx, "server_uuid", "server_id", "hostname", "port")
	if err != nil {
		return "", err
	}
	if id := v["server_uuid"]; id != "" {
		return id, nil
	}
	return fmt.Sprintf("%s@%s:%s", v["server_id"], v["hostname"], v["port"]), nil
}

// Pin sets the session so that values mean the same everywhere: times in UTC, no
// SQL mode that bends values or notation, results as the columns hold them when
// raw, else as utf8mb4.
func (c *Conn) Pin(ctx context.Context, raw bool) error {
	results := "utf8mb4"
	if raw {
		results = "NULL"
	}
	_, err := c.Exec(ctx, "SET character_set_client = utf8mb4, character_set_connection = utf8mb4, character_set_results = "+results+", time_zone = '+00:00', sql_mode = ''")
	return err
}

// Quote quotes a name.
func Quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// Literal quotes text for the SQL mode of Pin.
func Literal(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\x00", `\0`, "\n", `\n`, "\r", `\r`, "\x1a", `\Z`).Replace(text) + "'"
}
