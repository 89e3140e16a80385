package pglog

import (
	"context"
	"fmt"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgcat"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Check looks at the settings of the server, the rights of the user and the
// replica identities of the tables.
func (r *Reader) Check(ctx context.Context) ([]sdk.Finding, error) {
	var found []sdk.Finding
	add := func(s sdk.Severity, subject, message, advice string) {
		found = append(found, sdk.Finding{Severity: s, Subject: subject, Message: message, Advice: advice})
	}
	rows, err := r.ask(ctx, `SELECT current_setting('wal_level'), current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_slots),
		(SELECT rolreplication OR rolsuper FROM pg_roles WHERE rolname = current_user), current_setting('max_slot_wal_keep_size'), has_database_privilege(current_database(), 'CREATE'),
		current_setting('max_wal_senders')::int - (SELECT count(*) FROM pg_stat_replication), pg_is_in_recovery()`)
	if err != nil {
		f := sdk.AsFault(err)
		add(sdk.Error, r.srv.Name(), f.Message, f.Suggestion)
		return found, nil
	}
	v := rows[0]
	if string(v[0]) != "logical" {
		add(sdk.Error, "wal_level", "found "+string(v[0])+", expected logical", "ALTER SYSTEM SET wal_level = 'logical' and restart the server")
	}
	if string(v[6]) == "t" {
		add(sdk.Error, r.srv.Name(), "the server is a standby", "point url at the primary server")
	}
	if strings.HasPrefix(string(v[1]), "-") || string(v[1]) == "0" {
		add(sdk.Warning, "max_replication_slots", "all slots are in use", "drop slots that nobody reads, or raise it; a task that has its slot already needs no other")
	}
	if strings.HasPrefix(string(v[5]), "-") || string(v[5]) == "0" {
		add(sdk.Error, "max_wal_senders", "all senders are in use", "raise it and restart the server")
	}
	if string(v[2]) != "t" {
		add(sdk.Error, "user", "the user has no right to replicate", "ALTER ROLE … REPLICATION")
	}
	if string(v[4]) != "t" {
		add(sdk.Warning, "user", "the user cannot make publications in this database", "GRANT CREATE ON DATABASE …, or make the publication by hand and name it in publication")
	}
	if string(v[3]) == "-1" {
		add(sdk.Info, "max_slot_wal_keep_size", "a task that is not running keeps the server from removing log, without a limit", "set a limit below the free space; a slot above it is lost and the task needs a new snapshot")
	}
	slots, err := r.ask(ctx, `SELECT slot_name, coalesce(wal_status, ''), coalesce(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, restart_lsn), 0)::bigint, active
		FROM pg_replication_slots WHERE slot_type = 'logical' AND (slot_name = $1 OR $1 = '' AND slot_name LIKE 'datalink\_%') ORDER BY 1`, r.cfg.Slot)
	if err != nil {
		return found, err
	}
	for _, x := range slots {
		severity, advice := sdk.Info, ""
		if st := string(x[1]); st == "lost" || st == "unreserved" {
			severity, advice = sdk.Warning, "a lost slot serves no task any more: release its task and start it over with a snapshot; raise max_slot_wal_keep_size"
		} else if string(x[3]) != "t" {
			advice = "nobody reads it: drop it when its task is gone"
		}
		add(severity, "slot "+string(x[0]), fmt.Sprintf("keeps %s bytes of log, wal_status %s", x[2], x[1]), advice)
	}
	var tables []*pgcat.Table
	err = r.asking(ctx, func() error {
		tables, err = r.cat.List(ctx, r.sql, r.filter.Wants)
		return err
	})
	if err != nil {
		return found, err
	}
	if len(tables) == 0 {
		add(sdk.Error, "tables", "no table matches", "names are schema.table, such as public.orders")
	}
	for _, t := range tables {
		if t.Kind == 'p' {
			add(sdk.Info, t.Full(), "it has partitions: TRUNCATE, DROP and DETACH of a single one are not in the log", "delete the rows of a partition by DELETE, or take the table anew afterwards")
		}
		if !t.Identified() {
			add(sdk.Error, t.Full(), fmt.Sprintf("no replica identity (%c): once it is published the server refuses its updates and deletes", t.Identity), "ALTER TABLE "+t.Quoted()+" REPLICA IDENTITY FULL, or add a primary key")
		}
	}
	return found, r.rights(ctx, tables, add)
}

// rights names the tables that the user cannot read or publish.
func (r *Reader) rights(ctx context.Context, tables []*pgcat.Table, add func(sdk.Severity, string, string, string)) error {
	for _, t := range tables {
		rows, err := r.ask(ctx, `SELECT has_table_privilege($1::oid, 'SELECT'), pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = $1::oid`, fmt.Sprint(t.OID))
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			continue
		}
		if string(rows[0][0]) != "t" {
			add(sdk.Error, t.Full(), "the user cannot read it", "GRANT SELECT ON "+t.Quoted()+" TO …")
		}
		if string(rows[0][1]) != "t" && r.cfg.Publication == "" {
			add(sdk.Error, t.Full(), "only its owner can publish it", "make the publication as the owner and name it in publication")
		}
	}
	return nil
}

// Discover lists the tables that match.
func (r *Reader) Discover(ctx context.Context, out func(*batch.Schema) error) error {
	var tables []*pgcat.Table
	err := r.asking(ctx, func() error {
		var err error
		tables, err = r.cat.List(ctx, r.sql, r.filter.Wants)
		return err
	})
	if err != nil {
		return err
	}
	for i, t := range tables {
		if err := out(t.Schema(uint32(i+1), 1, "")); err != nil {
			return err
		}
	}
	return nil
}

// Release drops the slot and the publication of a task. A publication that the
// configuration names stays.
func (r *Reader) Release(ctx context.Context, taskUID string) error {
	r.stop()
	r.slot, r.publication = r.cfg.names(taskUID)
	if err := r.drop(ctx); err != nil {
		return err
	}
	if r.cfg.Publication != "" {
		return nil
	}
	return r.exec(ctx, "drop the publication", "DROP PUBLICATION IF EXISTS "+pgcat.Quote(r.publication))
}
