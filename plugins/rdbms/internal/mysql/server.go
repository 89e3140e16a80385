package mysql

import (
	"context"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
)

// server is what is known of a server.
type server struct {
	version   string
	maria     bool
	packet    int  // max_allowed_packet
	local     bool // LOAD DATA LOCAL is allowed
	foldTable bool // names of tables have no case
	statement bool // the binary log holds statements
	readOnly  bool
	multi     string // why several servers take writes, "" where they do not
}

func readServer(ctx context.Context, s *session) (*server, error) {
	rows, err := s.query(ctx, "SELECT VERSION(), @@max_allowed_packet, @@local_infile, @@lower_case_table_names, @@log_bin, @@binlog_format, @@read_only")
	if err != nil {
		return nil, err
	}
	r := rows[0]
	v := &server{
		version: r[0].text(), maria: strings.Contains(r[0].text(), "MariaDB"), packet: int(r[1].number()), local: r[2].number() != 0,
		foldTable: r[3].number() != 0, statement: r[4].number() != 0 && r[5].text() == "STATEMENT", readOnly: r[6].number() != 0,
	}
	rows, err = s.query(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('wsrep_on', 'wsrep_provider', 'group_replication_single_primary_mode', 'group_replication_group_name')")
	if err != nil {
		return nil, err
	}
	vars := map[string]string{}
	for _, r := range rows {
		vars[r[0].text()] = r[1].text()
	}
	if vars["wsrep_on"] == "ON" && vars["wsrep_provider"] != "none" && vars["wsrep_provider"] != "" {
		v.multi = "a Galera cluster"
	}
	if vars["group_replication_single_primary_mode"] == "OFF" && vars["group_replication_group_name"] != "" {
		v.multi = "group replication with several primaries"
	}
	return v, nil
}

// check refuses servers on which the fence or the schema changes are void.
func (v *server) check(cfg *Config) error {
	if v.statement {
		return sdk.Faultf(sdk.CodeRefused, "binlog_format is STATEMENT, with which transactions at READ COMMITTED cannot be written").
			Suggest("set binlog_format to ROW or MIXED")
	}
	if v.multi != "" && cfg.DDL == target.Apply {
		return sdk.Faultf(sdk.CodeRefused, "the target is %s: statements that commit by themselves cannot be fenced there, and ddl is apply", v.multi).
			Suggest("set ddl: stop or ddl: ignore and change the target by hand")
	}
	return nil
}
