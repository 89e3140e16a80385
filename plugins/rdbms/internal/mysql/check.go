package mysql

import (
	"context"
	"fmt"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
)

// smallPacket is the max_allowed_packet below which rows of usual sizes may not
// get through.
const smallPacket = 16 << 20

// Check looks at server, account and what the target holds. It writes nothing.
func (w *Writer) Check(ctx context.Context) ([]sdk.Finding, error) {
	var out []sdk.Finding
	add := func(s sdk.Severity, subject, message, advice string) {
		out = append(out, sdk.Finding{Severity: s, Subject: subject, Message: message, Advice: advice})
	}
	where := w.addr.where()
	s, err := w.connect(ctx, true)
	if err != nil {
		f := sdk.AsFault(w.fault("connect", err))
		add(sdk.Error, where, f.Message, f.Suggestion)
		return out, nil
	}
	defer s.close()
	v, err := readServer(ctx, s)
	if err != nil {
		return nil, w.fault("check", err)
	}
	add(sdk.Info, where, "server "+v.version, "")
	if err := v.check(&w.cfg); err != nil {
		f := sdk.AsFault(err)
		add(sdk.Error, where, f.Message, f.Suggestion)
	}
	if v.packet < smallPacket {
		add(sdk.Warning, where, fmt.Sprintf("max_allowed_packet is %d bytes: a larger row is refused", v.packet), "set it to 64 MiB or more")
	}
	if w.cfg.Bulk == target.Auto && !v.local {
		add(sdk.Info, where, "local_infile is off: snapshots are written by INSERT", "set it to ON for faster snapshots")
	}
	if err := w.checkDurable(ctx, s, add); err != nil {
		return nil, w.fault("check", err)
	}
	other, err := w.connect(ctx, true)
	if err != nil {
		return nil, w.fault("connect", err)
	}
	if other.id == s.id {
		add(sdk.Error, where, "two connections are one session at the server", "connect to the server itself: transaction pooling voids the fence")
	}
	other.close()
	rows, err := s.query(ctx, "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = "+literal(w.addr.database))
	if err != nil {
		return nil, w.fault("check", err)
	}
	if len(rows) == 0 {
		level, advice := sdk.Info, ""
		if w.cfg.Create != target.Auto {
			level, advice = sdk.Error, "CREATE DATABASE "+quote(w.addr.database)
		}
		add(level, where, "the database is not there", advice)
	}
	if err := w.checkGrants(ctx, s, add); err != nil {
		return nil, w.fault("check", err)
	}
	return out, w.fault("check", w.checkHeld(ctx, s, add))
}

type adder func(s sdk.Severity, subject, message, advice string)

func (w *Writer) checkDurable(ctx context.Context, s *session, add adder) error {
	rows, err := s.query(ctx, "SELECT @@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog")
	if err != nil {
		return err
	}
	r := rows[0]
	if r[0].number() != 1 || r[1].number() == 1 && r[2].number() != 1 {
		add(sdk.Warning, w.addr.where(), fmt.Sprintf("innodb_flush_log_at_trx_commit is %s and sync_binlog %s: a crash of the machine may lose commits that were acknowledged", r[0].text(), r[2].text()),
			"set both to 1, or keep the source's log long enough: rows and progress are lost together, and the task continues from there")
	}
	return nil
}

// checkGrants reads what the account may do. Rights that come by a role are not
// seen.
func (w *Writer) checkGrants(ctx context.Context, s *session, add adder) error {
	rows, err := s.query(ctx, "SHOW GRANTS")
	if err != nil {
		return err
	}
	need := []string{"SELECT", "INSERT", "UPDATE", "DELETE"}
	if w.cfg.Create == target.Auto {
		need = append(need, "CREATE")
	}
	if w.cfg.OnMissingColumn == target.Add || w.cfg.DDL == target.Apply {
		need = append(need, "ALTER")
	}
	if w.cfg.DDL == target.Apply {
		need = append(need, "DROP")
	}
	have, role := map[string]bool{}, false
	for _, r := range rows {
		text := strings.ToUpper(r[0].text())
		rights, rest, ok := strings.Cut(strings.TrimPrefix(text, "GRANT "), " ON ")
		if !ok {
			role = true
			continue
		}
		on, _, _ := strings.Cut(rest, " TO ")
		on = strings.ReplaceAll(strings.ReplaceAll(on, "`", ""), `\_`, "_")
		if on != "*.*" && on != strings.ToUpper(w.addr.database)+".*" {
			continue
		}
		for _, p := range strings.Split(rights, ",") {
			have[strings.TrimSpace(p)] = true
		}
	}
	var missing []string
	for _, n := range need {
		if !have[n] && !have["ALL PRIVILEGES"] {
			missing = append(missing, n)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	level, note := sdk.Error, ""
	if role {
		level, note = sdk.Warning, ", unless a role has them"
	}
	add(level, w.addr.where(), "the account lacks "+strings.Join(missing, ", ")+" on "+quote(w.addr.database)+".*"+note,
		"GRANT "+strings.Join(missing, ", ")+" ON "+quote(w.addr.database)+".* TO the account, and on each other database that tables are written to")
	return nil
}

// checkHeld names the tasks whose progress the target holds.
func (w *Writer) checkHeld(ctx context.Context, s *session, add adder) error {
	have, err := w.engines(ctx, s)
	if err != nil {
		return err
	}
	for _, t := range bookkeeping {
		if e, ok := have[t.name]; ok && !strings.EqualFold(e, "InnoDB") {
			add(sdk.Error, t.name, "the engine is "+e+", expected InnoDB: without transactions there is no fence", "ALTER TABLE "+w.book(t.name)+" ENGINE=InnoDB")
		}
	}
	if _, ok := have[tabProgress]; !ok {
		return nil
	}
	rows, err := s.query(ctx, "SELECT task, writer, execution_id, epoch, updated_at, task_uid, store_uid FROM "+w.book(tabProgress)+" WHERE lane = -1 AND NOT released ORDER BY task, writer")
	if err != nil {
		return err
	}
	for _, r := range rows {
		add(sdk.Info, w.addr.where(), fmt.Sprintf("holds progress of task %s, writer %s: execution %s, epoch %s, at %s, task uid %s, store %s",
			r[0].text(), r[1].text(), r[2].text(), r[3].text(), r[4].text(), r[5].text(), r[6].text()),
			"a task of that name with another uid or of another store is refused unless it takes over: --take-over")
	}
	return nil
}
