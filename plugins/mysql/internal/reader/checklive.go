package reader

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
	"github.com/datalink-go/datalink/sdk"
)

// findings collects what Check has seen.
type findings struct {
	all     []sdk.Finding
	address string
}

func (f *findings) add(s sdk.Severity, subject, message, advice string) {
	f.all = append(f.all, sdk.Finding{Severity: s, Subject: f.address + ": " + subject, Message: message, Advice: advice})
}

// checkLive looks at each server: what would make the task fail or lose data.
func (r *Reader) checkLive(ctx context.Context) ([]sdk.Finding, error) {
	var f findings
	reached := 0
	for _, a := range r.live.addrs {
		f.address = a
		c, err := server.Dial(ctx, r.live.cfg, a)
		if err != nil {
			if ctx.Err() != nil {
				return f.all, ctx.Err()
			}
			fault := sdk.AsFault(unreachable([]error{err}))
			f.add(sdk.Warning, "connection", fault.Message, fault.Suggestion)
			continue
		}
		reached++
		err = r.checkServer(ctx, c, &f)
		_ = c.Close()
		if err != nil {
			return f.all, err
		}
	}
	if reached == 0 {
		for i := range f.all {
			f.all[i].Severity = sdk.Error
		}
	}
	return f.all, nil
}

func (r *Reader) checkServer(ctx context.Context, c *server.Conn, f *findings) error {
	f.add(sdk.Info, "server", fmt.Sprintf("%s, %s", c.Version, map[bool]string{true: "over TLS", false: "not encrypted"}[c.Encrypted()]), "")
	v, err := c.Variables(ctx, "log_bin", "binlog_format", "binlog_row_image", "binlog_row_metadata", "binlog_row_value_options", "gtid_mode", "gtid_strict_mode",
		"binlog_expire_logs_seconds", "expire_logs_days", "max_allowed_packet", "time_zone", "system_time_zone", "server_id", "log_slave_updates", "log_replica_updates", "read_only")
	if err != nil {
		return err
	}
	is := func(name, value string) bool { return strings.EqualFold(v[name], value) }
	if !is("log_bin", "ON") && v["log_bin"] != "1" {
		f.add(sdk.Error, "log_bin", "found "+v["log_bin"]+", expected ON: the server writes no binary log", "set log_bin in the server's configuration and restart it")
		return nil
	}
	if b := v["binlog_format"]; b != "" && !is("binlog_format", "ROW") {
		f.add(sdk.Error, "binlog_format", "found "+b+", expected ROW: changes are logged as statements, which cannot be read", "SET GLOBAL binlog_format = 'ROW'; sessions that are open keep the old one until they connect anew")
	}
	if b := v["binlog_row_image"]; b != "" && !is("binlog_row_image", "FULL") {
		f.add(sdk.Warning, "binlog_row_image", "found "+b+", expected FULL: updates do not hold the columns that stay, and writers treat them as unchanged", "SET GLOBAL binlog_row_image = 'FULL'")
		if strings.Contains(strings.ToUpper(v["binlog_row_value_options"]), "PARTIAL_JSON") {
			f.add(sdk.Error, "binlog_row_value_options", "found PARTIAL_JSON without full row images: a difference has no document to be applied to", "SET GLOBAL binlog_row_value_options = '', or binlog_row_image = 'FULL'")
		}
	}
	if m, ok := v["binlog_row_metadata"]; !ok || !is("binlog_row_metadata", "FULL") {
		f.add(sdk.Warning, "binlog_row_metadata", fmt.Sprintf("found %q, expected FULL: names and labels come from statements in the log alone", m), "SET GLOBAL binlog_row_metadata = 'FULL' (MySQL 8.0.1, MariaDB 10.5)")
	}
	if !c.MariaDB && !is("gtid_mode", "ON") {
		sev := sdk.Warning
		if len(r.live.addrs) > 1 {
			sev = sdk.Error
		}
		f.add(sev, "gtid_mode", fmt.Sprintf("found %q, expected ON: positions are files and offsets, so reading cannot go on at another server", v["gtid_mode"]), "set gtid_mode and enforce_gtid_consistency to ON")
	}
	if c.MariaDB && !is("gtid_strict_mode", "ON") {
		f.add(sdk.Warning, "gtid_strict_mode", "found OFF, expected ON: two servers that write into one domain give sequence numbers that go back, where the reader stops", "SET GLOBAL gtid_strict_mode = ON")
	}
	r.checkRetention(v, f)
	if n, _ := strconv.ParseInt(v["max_allowed_packet"], 10, 64); n > 0 && n < 16<<20 {
		f.add(sdk.Warning, "max_allowed_packet", fmt.Sprintf("found %d, expected 16777216 or more: larger rows cannot be read by a snapshot, and their events may not be sent", n), "SET GLOBAL max_allowed_packet = 67108864")
	}
	f.add(sdk.Info, "time_zone", fmt.Sprintf("%s (system: %s); TIMESTAMP values are read in UTC, DATETIME values as they are", v["time_zone"], v["system_time_zone"]), "")
	if v["server_id"] == "0" || v["server_id"] == "" {
		f.add(sdk.Error, "server_id", "found 0: the server sends its log to nobody", "set server_id to a number that no other server has")
	}
	if own := strconv.FormatUint(uint64(r.cfg.ServerID), 10); r.cfg.ServerID != 0 && own == v["server_id"] {
		f.add(sdk.Error, "serverId", "the task's serverId "+own+" is that of the server itself", "give the task another serverId")
	}
	if updates := v["log_replica_updates"] + v["log_slave_updates"]; len(r.live.addrs) > 1 && !strings.Contains(strings.ToUpper(updates), "ON") {
		f.add(sdk.Error, "log_replica_updates", "found OFF: as a replica the server would not log what it gets, so reading could not go on here", "set log_replica_updates (log_slave_updates) to ON and restart it")
	}
	return r.checkPrivileges(ctx, c, f)
}

func (r *Reader) checkRetention(v map[string]string, f *findings) {
	s, _ := strconv.ParseFloat(v["binlog_expire_logs_seconds"], 64)
	if d, _ := strconv.ParseFloat(v["expire_logs_days"], 64); s == 0 {
		s = d * 86400
	}
	if s > 0 && s < 86400 {
		f.add(sdk.Warning, "retention", fmt.Sprintf("the log is kept for %.1f hours: a task that stands still for longer loses its position", s/3600), "SET GLOBAL binlog_expire_logs_seconds = 604800")
	}
}

// checkPrivileges tries what the reader does, so that roles and wildcards count.
func (r *Reader) checkPrivileges(ctx context.Context, c *server.Conn, f *findings) error {
	refused := func(err error) bool {
		switch server.Code(err) {
		case 1044, 1045, 1142, 1227, 1370:
			return true
		}
		return false
	}
	var log facts
	if err := log.status(ctx, c); refused(err) {
		grant := "REPLICATION CLIENT"
		if c.MariaDB && c.Number >= 100502 {
			grant = "BINLOG MONITOR"
		}
		f.add(sdk.Error, "privileges", fmt.Sprintf("the account may not see where the log is: %v", err), fmt.Sprintf("GRANT %s ON *.* TO %s", grant, r.cfg.User))
	} else if err != nil {
		return err
	}
	if res, err := c.Query(ctx, "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'"); err != nil {
		return err
	} else {
		n := 0
		for _, row := range res.Rows {
			db, table := row.Text(0), row.Text(1)
			if !r.filter.wants(db, table) {
				continue
			}
			if n++; n > checkedTables {
				continue
			}
			// Any privilege shows a table; layouts and snapshots need SELECT.
			if _, err := c.Query(ctx, "SELECT 1 FROM "+server.Quote(db)+"."+server.Quote(table)+" LIMIT 0"); refused(err) {
				f.add(sdk.Error, "privileges", fmt.Sprintf("the account may not read table %s.%s: %v", db, table, err), fmt.Sprintf("GRANT SELECT ON %s.%s TO %s", server.Quote(db), server.Quote(table), r.cfg.User))
				n = checkedTables
			}
		}
		if n == 0 {
			sev := sdk.Warning
			if r.start.snapshot {
				sev = sdk.Error
			}
			f.add(sev, "privileges", "the account sees none of the tables that are read", fmt.Sprintf("GRANT SELECT ON DATABASE.* TO %s; or see whether tables names what is there", r.cfg.User))
		}
	}
	if log, err := learn(ctx, c); err == nil && log.kind == spotFile && !c.MariaDB {
		// Without GTIDs a snapshot waits for the sessions that are committing.
		if _, err := c.Query(ctx, "SELECT PROCESSLIST_ID FROM performance_schema.threads LIMIT 1"); refused(err) {
			f.add(snapshotNeeds(r), "privileges", fmt.Sprintf("the account may not see which sessions are committing, which a snapshot on a server without GTIDs needs: %v", err),
				fmt.Sprintf("GRANT SELECT ON performance_schema.threads TO %s; GRANT PROCESS ON *.* TO %s", r.cfg.User, r.cfg.User))
		}
	}
	r.checkExcess(ctx, c, f)
	// Last: the connection is that of a replica afterwards.
	id, _ := serverID("check " + r.live.cfg.Program)
	if err := (&dump{id: id}).register(c); refused(err) {
		f.add(sdk.Error, "privileges", fmt.Sprintf("the account may not read the log: %v", err), fmt.Sprintf("GRANT REPLICATION SLAVE ON *.* TO %s", r.cfg.User))
	} else if err != nil {
		return err
	}
	return nil
}

// checkedTables is for how many tables it is tried whether they may be read.
const checkedTables = 200

// snapshotNeeds is how bad it is that a snapshot cannot be taken.
func snapshotNeeds(r *Reader) sdk.Severity {
	if r.start.snapshot {
		return sdk.Error
	}
	return sdk.Warning
}

// checkExcess names privileges that an account that only reads should not have.
func (r *Reader) checkExcess(ctx context.Context, c *server.Conn, f *findings) {
	res, err := c.Query(ctx, "SHOW GRANTS")
	if err != nil {
		return
	}
	for _, row := range res.Rows {
		g := strings.ToUpper(row.Text(0))
		head, _, _ := strings.Cut(g, " ON ")
		for _, w := range []string{"ALL PRIVILEGES", "SUPER", "INSERT", "UPDATE", "DELETE", "DROP", "ALTER", "CREATE"} {
			if strings.Contains(head, w) {
				f.add(sdk.Info, "privileges", "the account may do more than read ("+w+")", "an account with REPLICATION SLAVE, REPLICATION CLIENT (BINLOG MONITOR) and SELECT is enough")
				return
			}
		}
	}
}
