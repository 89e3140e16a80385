package postgres

import (
	"context"
	"fmt"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Check looks at the server, the database and what the user may do there. It
// writes nothing.
func (w *Writer) Check(ctx context.Context) ([]sdk.Finding, error) {
	var out []sdk.Finding
	add := func(s sdk.Severity, subject, message, advice string) {
		out = append(out, sdk.Finding{Severity: s, Subject: subject, Message: message, Advice: advice})
	}
	s, err := w.dial(ctx)
	if err != nil {
		f := sdk.AsFault(err)
		add(sdk.Error, w.place(), f.Message, f.Suggestion)
		return out, nil
	}
	defer s.close()
	if err := w.direct(ctx, s); err != nil {
		f := sdk.AsFault(err)
		add(sdk.Error, w.place(), f.Message, f.Suggestion)
		return out, nil
	}
	rows, err := s.query(ctx, `SELECT current_setting('server_version_num')::int, pg_is_in_recovery(), current_setting('server_encoding'), current_setting('fsync'),
 current_setting('full_page_writes'), current_setting('synchronous_commit'), current_user, has_database_privilege(current_database(), 'CREATE'),
 has_database_privilege(current_database(), 'TEMPORARY'), (SELECT usesuper FROM pg_user WHERE usename = current_user), current_setting('default_transaction_read_only')`)
	if err != nil {
		return nil, w.fault("check", err)
	}
	r := rows[0]
	user := r.text(6)
	if v := r.int(0); v < 120000 {
		add(sdk.Error, "server", fmt.Sprintf("is PostgreSQL %d, expected 12 or later", v/10000), "upgrade the server")
	}
	if r.bool(1) {
		add(sdk.Error, "server", "is a standby, which takes no writes", "name the primary in url")
	}
	if r.text(2) != "UTF8" {
		add(sdk.Warning, "encoding", "of the database is "+r.text(2)+": characters that it lacks are refused, record by record", "create the database with ENCODING 'UTF8'")
	}
	if r.text(3) != "on" {
		add(sdk.Warning, "fsync", "is off: a crash of the server may lose rows whose position the host takes for stored", "set fsync = on")
	}
	if r.text(5) == "local" {
		add(sdk.Info, "synchronous_commit", "is local: a fail-over to a standby may take commits back; the fence notices, and the task continues from what the standby holds", "set synchronous_commit = on")
	}
	if !r.bool(8) && w.cfg.Bulk == BulkAuto {
		add(sdk.Error, "privileges", "user "+user+" may make no temporary tables, which bulk: auto needs", "GRANT TEMPORARY ON DATABASE "+quote(w.pg.Database)+" TO "+quote(user)+", or set bulk: off")
	}
	have, err := w.kept(ctx, s)
	if err != nil {
		return nil, w.fault("check", err)
	}
	if err := w.checkSchema(ctx, s, user, have, r.bool(7), add); err != nil {
		return nil, w.fault("check", err)
	}
	if have {
		return w.checkProgress(ctx, s, out)
	}
	return out, nil
}

func (w *Writer) checkSchema(ctx context.Context, s *session, user string, have, create bool, add func(sdk.Severity, string, string, string)) error {
	rows, err := s.query(ctx, "SELECT has_schema_privilege(oid, 'USAGE'), has_schema_privilege(oid, 'CREATE') FROM pg_catalog.pg_namespace WHERE nspname = $1", w.cfg.Schema)
	if err != nil {
		return err
	}
	name := quote(w.cfg.Schema)
	switch {
	case len(rows) == 0 && !create:
		add(sdk.Error, "privileges", "schema "+name+" is not there, and user "+user+" may not create it", "CREATE SCHEMA "+name+" AUTHORIZATION "+quote(user))
	case len(rows) == 0:
		add(sdk.Info, "schema "+name, "is not there and will be created", "")
	case !rows[0].bool(0):
		add(sdk.Error, "privileges", "user "+user+" may not use schema "+name, "GRANT USAGE, CREATE ON SCHEMA "+name+" TO "+quote(user))
	case !rows[0].bool(1) && !have:
		add(sdk.Error, "privileges", "user "+user+" may create no tables in schema "+name+", where progress is kept", "GRANT CREATE ON SCHEMA "+name+" TO "+quote(user))
	case !rows[0].bool(1) && w.cfg.Create != "off":
		add(sdk.Warning, "privileges", "user "+user+" may create no tables in schema "+name, "GRANT CREATE ON SCHEMA "+name+" TO "+quote(user)+", or set create: off")
	}
	if !have {
		return nil
	}
	rows, err = s.query(ctx, w.own("SELECT has_table_privilege('$S.datalink_progress', 'SELECT, UPDATE') AND has_table_privilege('$S.datalink_progress', 'INSERT, DELETE')"))
	if err == nil && !rows[0].bool(0) {
		add(sdk.Error, "privileges", "user "+user+" may not write "+name+".datalink_progress", w.own("GRANT ALL ON $S.datalink_progress, $S.datalink_state, $S.datalink_dead_letters TO ")+quote(user))
	}
	return err
}

func (w *Writer) checkProgress(ctx context.Context, s *session, out []sdk.Finding) ([]sdk.Finding, error) {
	rows, err := s.query(ctx, w.own("SELECT task, writer, execution_id, epoch, updated_at, task_uid, store_uid FROM $S.datalink_progress WHERE lane = -1 AND NOT released ORDER BY task, writer"))
	if err != nil {
		return nil, w.fault("check", err)
	}
	for _, r := range rows {
		out = append(out, sdk.Finding{
			Severity: sdk.Info, Subject: w.place(),
			Message: fmt.Sprintf("holds progress of task %s, writer %s: execution %s, epoch %s, at %s, task uid %s, store %s", r[0], r[1], r[2], r[3], r[4], r[5], r[6]),
			Advice:  "a task of that name with another uid or of another store is refused unless it takes over: --take-over",
		})
	}
	return out, nil
}

// Discover lists the tables of the target, without the writer's own.
func (w *Writer) Discover(ctx context.Context, out func(*batch.Schema) error) error {
	s, err := w.dial(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	rows, err := s.query(ctx, `SELECT n.nspname, c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r','p') AND NOT c.relispartition AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND c.relname !~ '^datalink_' ORDER BY 1, 2`)
	if err != nil {
		return w.fault("discover", err)
	}
	for i, r := range rows {
		t, err := describe(ctx, s, r.text(0), r.text(1))
		if err != nil {
			return w.fault("discover", err)
		}
		if t == nil {
			continue
		}
		if err := out(t.schema(uint32(i + 1))); err != nil {
			return err
		}
	}
	return nil
}
