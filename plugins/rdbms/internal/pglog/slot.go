package pglog

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgcat"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgscan"
	"github.com/datalink-go/datalink/sdk"
)

// slotInfo is a row of pg_replication_slots.
type slotInfo struct {
	plugin, kind, database string
	pid                    string // of who uses it; "" = nobody
	confirmed              lsn
	status                 string // reserved, extended, unreserved, lost
	retained               int64  // bytes of log that it keeps
}

func (r *Reader) ask(ctx context.Context, sql string, args ...string) (rows [][][]byte, err error) {
	err = r.asking(ctx, func() error {
		var err error
		rows, err = pgcat.Query(ctx, r.sql, sql, args...)
		return err
	})
	return rows, err
}

func (r *Reader) slotState(ctx context.Context) (*slotInfo, error) {
	rows, err := r.ask(ctx, `SELECT coalesce(plugin, ''), slot_type, coalesce(database, ''), coalesce(active_pid::text, ''), coalesce(confirmed_flush_lsn, '0/0'), coalesce(wal_status, ''),
		coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::bigint FROM pg_replication_slots WHERE slot_name = $1`, r.slot)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	v := rows[0]
	at, err := parseLSN(string(v[4]))
	if err != nil {
		return nil, err
	}
	retained, _ := strconv.ParseInt(string(v[6]), 10, 64)
	return &slotInfo{string(v[0]), string(v[1]), string(v[2]), string(v[3]), at, string(v[5]), retained}, nil
}

// prepare looks at the server, makes the publication what it should be, and
// decides where to begin.
func (r *Reader) prepare(ctx context.Context) error {
	rows, err := r.ask(ctx, `SELECT system_identifier, CASE WHEN pg_is_in_recovery() THEN '0' ELSE substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) END, current_setting('wal_level'), pg_is_in_recovery(), current_setting('server_version_num'),
		CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END FROM pg_control_system()`)
	if err != nil {
		return err
	}
	v := rows[0]
	if string(v[3]) == "t" {
		return sdk.Faultf(sdk.CodeInvalidConfig, "%s is a standby, which this version cannot read from", r.srv.Name()).Suggest("point url at the primary server; host=a,b&target_session_attrs=read-write finds it")
	}
	if string(v[2]) != "logical" {
		return sdk.Faultf(sdk.CodeInvalidConfig, "%s has wal_level %s, expected logical", r.srv.Name(), v[2]).Suggest("ALTER SYSTEM SET wal_level = 'logical' and restart the server")
	}
	system, _ := strconv.ParseUint(string(v[0]), 10, 64)
	tli, _ := strconv.ParseUint(string(v[1]), 16, 32)
	end, err := parseLSN(string(v[5]))
	if err != nil {
		return err
	}
	r.here = place{system: system, timeline: uint32(tli)}
	if n, _ := strconv.Atoi(string(v[4])); n < 140000 && !r.cfg.NoStreaming {
		r.cfg.Log.Info("the server does not stream transactions before they commit", "version", n)
		r.cfg.NoStreaming = true
	}
	var tables []*pgcat.Table
	err = r.asking(ctx, func() error {
		tables, err = r.cat.List(ctx, r.sql, r.filter.Wants)
		return err
	})
	if err != nil {
		return err
	}
	if err := r.publish(ctx, tables); err != nil {
		return err
	}
	slot, err := r.slotState(ctx)
	if err != nil {
		return err
	}
	var least *point
	fresh := len(r.points) == 0
	r.snap.step = 0
	for i := range r.points {
		p := &r.points[i]
		if p.zero {
			fresh = true
			continue
		}
		if least == nil || p.compare(least.place) < 0 || p.compare(least.place) == 0 && p.ordinal < least.ordinal {
			least = p
		}
		r.snap.at = max(r.snap.at, p.lsn)
	}
	for i := range r.points {
		if p := &r.points[i]; !p.zero && p.lsn == r.snap.at {
			r.snap.step = max(r.snap.step, (p.step+1)&^1)
		}
	}
	if least == nil {
		return r.first(ctx, tables, slot)
	}
	if err := r.served(ctx, least, slot, end); err != nil {
		return err
	}
	r.here.lsn, r.here.step = least.lsn, least.step&^1
	if !r.start.snapshot {
		for _, t := range tables {
			// Asked for while the stream ran.
			if it := r.items[t.OID]; it != nil && !it.Done {
				r.snap.tables = append(r.snap.tables, t)
			}
		}
	}
	if r.start.snapshot {
		for _, t := range tables {
			it := r.items[t.OID]
			again := fresh || it != nil && it.mixed(least.lsn) && r.snap.at > least.lsn
			if it == nil || !it.Done || again {
				if again {
					it.restart()
				}
				r.snap.tables = append(r.snap.tables, t)
			}
		}
	} else if fresh {
		// A writer without progress gets what the slot still has.
		for i := range r.points {
			r.points[i].zero = false
		}
		if at := max(r.start.at, slot.confirmed); at < r.here.lsn {
			r.here.lsn, r.here.step = at, 0
		}
	}
	if r.here.lsn == r.snap.at {
		r.here.step = r.snap.step
	}
	return r.setHorizon(ctx)
}

// mixed reports whether the stream, from a place on, has yet to catch up with
// chunks of several snapshots. Points that lie apart there are not right for one
// another's.
func (it *tableItem) mixed(from lsn) bool {
	for _, g := range append(slices.Clone(it.Ranges), it.Singles...) {
		if until, err := parseLSN(g.Until); err == nil && until > from {
			return len(it.Ranges) > 1 || len(it.Singles) > 0
		}
	}
	return false
}

// restart forgets how far the snapshot has got.
func (it *tableItem) restart() {
	if it != nil {
		it.Done, it.Hi, it.Ranges, it.Singles = false, nil, nil, nil
	}
}

// setHorizon notes which transactions must have ended before a snapshot has all
// that was delivered, and all that the publication did not hold yet; and what
// chunks the stream has yet to catch up with.
func (r *Reader) setHorizon(ctx context.Context) error {
	if len(r.snap.tables) > 0 {
		rows, err := r.ask(ctx, "SELECT pg_snapshot_xmax(pg_current_snapshot())")
		if err != nil {
			return err
		}
		if r.snap.horizon, err = strconv.ParseUint(string(rows[0][0]), 10, 64); err != nil {
			return err
		}
		if err := r.pendingWindows(); err != nil {
			return err
		}
		return nil
	}
	return r.openWindows()
}

// pendingWindows keeps changes back that come before the snapshot of their table:
// it will have them.
func (r *Reader) pendingWindows() error {
	if err := r.openWindows(); err != nil {
		return err
	}
	for _, t := range r.snap.tables {
		// Everything before the snapshot is in it.
		r.windows[t.OID] = &window{ranges: []windowRange{{snap: visible{min: uint32(r.snap.horizon) + 1<<30, max: uint32(r.snap.horizon) + 1<<30}}}}
	}
	r.win.until = 1<<64 - 1
	return nil
}

// first decides where a task without progress begins.
func (r *Reader) first(ctx context.Context, tables []*pgcat.Table, slot *slotInfo) error {
	clear(r.items)
	if r.start.snapshot {
		r.snap.tables = tables
	}
	switch {
	case slot != nil && r.start.at > 0:
		if slot.confirmed > r.start.at {
			return r.purged(r.start.at, fmt.Sprintf("slot %s begins at %s", r.slot, slot.confirmed))
		}
		r.here.lsn = r.start.at
		return nil
	case r.start.at > 0:
		return sdk.Faultf(sdk.CodePositionPurged, "start: position %s: there is no slot %s that kept the log from there", r.start.at, r.slot).
			Suggest("make the slot before the position matters, or begin with start: snapshot or latest")
	case slot != nil && r.start.snapshot && r.cfg.Slot == "":
		// What an earlier start left before any of it was stored.
		if err := r.drop(ctx); err != nil {
			return err
		}
	case slot != nil:
		if err := r.usable(slot); err != nil {
			return err
		}
		r.here.lsn, r.snap.at = slot.confirmed, slot.confirmed
		return r.setHorizon(ctx)
	}
	r.snap.create = true
	return nil
}

// usable says why a slot cannot serve this task.
func (r *Reader) usable(s *slotInfo) error {
	switch {
	case s.kind != "logical" || s.plugin != "pgoutput" || s.database != r.srv.Database():
		return sdk.Faultf(sdk.CodeInvalidConfig, "slot %s is a %s slot of plugin %q in database %q, expected a logical one of pgoutput in %s", r.slot, s.kind, s.plugin, s.database, r.srv.Database()).Suggest("choose another name in slot")
	case s.status == "lost":
		return sdk.Faultf(sdk.CodePositionPurged, "slot %s was invalidated: the server has removed log that it needed, since it kept more than max_slot_wal_keep_size", r.slot).
			Suggest("delete the task with --release, which drops the slot, and start it over with a snapshot; raise max_slot_wal_keep_size")
	}
	return nil
}

func (r *Reader) purged(at lsn, why string) error {
	return sdk.Faultf(sdk.CodePositionPurged, "the log from %s is not to be had any more: %s", at, why).Suggest("delete the task with --release and start it over with a snapshot")
}

// served says why the server cannot go on at a place.
func (r *Reader) served(ctx context.Context, p *point, slot *slotInfo, end lsn) error {
	if p.system != 0 && p.system != r.here.system {
		return sdk.Faultf(sdk.CodePositionUnknown, "position %s is of system %d, %s is system %d: another server, or one that was made anew", p.lsn, p.system, r.srv.Name(), r.here.system).
			Suggest("point url at the server the task was reading, or delete the task with --release and start it over with a snapshot")
	}
	if p.timeline > r.here.timeline && p.system != 0 {
		return sdk.Faultf(sdk.CodePositionUnknown, "position %s is on timeline %d, %s is on timeline %d: it is an old primary, or was restored to an earlier state", p.lsn, p.timeline, r.srv.Name(), r.here.timeline).
			Suggest("point url at the present primary")
	}
	if p.timeline != 0 && p.timeline < r.here.timeline {
		if err := r.failedOver(ctx, p); err != nil {
			return err
		}
	}
	if p.lsn > end {
		return sdk.Faultf(sdk.CodePositionUnknown, "position %s lies behind the end of the server's log at %s: the server was put back to an earlier state", p.lsn, end).
			Suggest("delete the task with --release and start it over with a snapshot: the target holds changes that the source has lost")
	}
	if slot == nil {
		return sdk.Faultf(sdk.CodePositionPurged, "slot %s is not there: it was dropped, or %s was promoted from a standby, which has no logical slots; the log from %s is not kept", r.slot, r.srv.Name(), p.lsn).
			Suggest("delete the task with --release and start it over with a snapshot")
	}
	if err := r.usable(slot); err != nil {
		return err
	}
	if slot.confirmed > p.lsn {
		return r.purged(p.lsn, fmt.Sprintf("slot %s was read up to %s by somebody else", r.slot, slot.confirmed))
	}
	return nil
}

// failedOver says why a position of an earlier timeline does not exist on this one.
func (r *Reader) failedOver(ctx context.Context, p *point) error {
	c, _, err := r.srv.Replicate(ctx)
	if err != nil {
		return err
	}
	defer pgcat.Close(c)
	h, err := pglogrepl.TimelineHistory(ctx, c, int32(r.here.timeline))
	if err != nil {
		return r.srv.Fault("read the history of timeline "+strconv.Itoa(int(r.here.timeline)), err)
	}
	for line := range strings.Lines(string(h.Content)) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != strconv.Itoa(int(p.timeline)) {
			continue
		}
		at, err := parseLSN(f[1])
		if err != nil {
			return err
		}
		if p.lsn > at {
			return sdk.Faultf(sdk.CodePositionUnknown, "position %s on timeline %d lies behind %s, where %s left that timeline in a failover: it lacks changes that the target has", p.lsn, p.timeline, at, r.srv.Name()).
				Suggest("delete the task with --release and start it over with a snapshot")
		}
	}
	return nil
}

// publish makes the publication hold the tables. One that the configuration names
// and that is there is used as it is.
func (r *Reader) publish(ctx context.Context, tables []*pgcat.Table) error {
	rows, err := r.ask(ctx, `SELECT puballtables, pubupdate OR pubdelete FROM pg_publication WHERE pubname = $1`, r.publication)
	if err != nil {
		return err
	}
	own := r.cfg.Publication == ""
	if len(rows) > 0 && !own {
		if err := r.unpublished(ctx, tables); err != nil {
			return err
		}
		if string(rows[0][1]) == "t" {
			return unidentified(tables)
		}
		return nil
	}
	if err := unidentified(tables); err != nil {
		return err
	}
	if len(tables) == 0 {
		return sdk.Faultf(sdk.CodeInvalidConfig, "no table of %s matches tables: %s", r.srv.Name(), strings.Join(r.cfg.Tables, ", ")).Suggest("names are schema.table, such as public.orders")
	}
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = t.Quoted()
	}
	slices.Sort(names)
	if len(rows) == 0 {
		// Changes of partitions appear as those of their table.
		sql := "CREATE PUBLICATION " + pgcat.Quote(r.publication) + " FOR TABLE " + strings.Join(names, ", ") + " WITH (publish_via_partition_root = true)"
		return r.exec(ctx, "make the publication", sql)
	}
	now, err := r.ask(ctx, `SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = $1`, r.publication)
	if err != nil {
		return err
	}
	var have []string
	for _, x := range now {
		have = append(have, pgcat.Quote(string(x[0]))+"."+pgcat.Quote(string(x[1])))
	}
	slices.Sort(have)
	if slices.Equal(have, names) {
		return nil
	}
	return r.exec(ctx, "change the publication", "ALTER PUBLICATION "+pgcat.Quote(r.publication)+" SET TABLE "+strings.Join(names, ", "))
}

// unpublished names the tables that a publication made by hand lacks: their rows
// would be copied, and their changes never come.
func (r *Reader) unpublished(ctx context.Context, tables []*pgcat.Table) error {
	now, err := r.ask(ctx, `SELECT schemaname || '.' || tablename FROM pg_publication_tables WHERE pubname = $1
		UNION SELECT pn.nspname || '.' || pc.relname FROM pg_publication p JOIN pg_publication_rel pr ON pr.prpubid = p.oid JOIN pg_class pc ON pc.oid = pr.prrelid JOIN pg_namespace pn ON pn.oid = pc.relnamespace WHERE p.pubname = $1`, r.publication)
	if err != nil {
		return err
	}
	have := map[string]bool{}
	for _, x := range now {
		have[string(x[0])] = true
	}
	var names, quoted []string
	for _, t := range tables {
		if !have[t.Full()] && t.Kind != 'p' { // partitions may be published one by one
			names, quoted = append(names, t.Full()), append(quoted, t.Quoted())
		}
	}
	if len(names) == 0 {
		return nil
	}
	return sdk.Faultf(sdk.CodeInvalidConfig, "publication %s of %s lacks %s: changes of these would never come", r.publication, r.srv.Name(), strings.Join(names, ", ")).
		Suggest("ALTER PUBLICATION %s ADD TABLE %s; or leave them out of tables", pgcat.Quote(r.publication), strings.Join(quoted, ", "))
}

func (r *Reader) exec(ctx context.Context, what, sql string) error {
	err := r.asking(ctx, func() error { return pgcat.Exec(ctx, r.sql, sql) })
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, r.publication, err)
	}
	return nil
}

// unidentified names the tables whose updates and deletes the server would refuse
// once they are published.
func unidentified(tables []*pgcat.Table) error {
	var names, alters []string
	for _, t := range tables {
		if !t.Identified() {
			names = append(names, t.Full())
			alters = append(alters, "ALTER TABLE "+t.Quoted()+" REPLICA IDENTITY FULL;")
		}
	}
	if len(names) == 0 {
		return nil
	}
	return sdk.Faultf(sdk.CodeInvalidConfig, "tables without a replica identity: %s; once they are published the server refuses their updates and deletes", strings.Join(names, ", ")).
		Suggest("%s or add a primary key, or leave them out with tables: \"!…\"", strings.Join(alters, " "))
}

// createSlot makes the slot; its snapshot is where the stream begins.
func (r *Reader) createSlot(ctx context.Context) error {
	c, _, err := r.srv.Replicate(ctx)
	if err != nil {
		return err
	}
	action := "NOEXPORT_SNAPSHOT"
	if len(r.snap.tables) > 0 {
		action = "EXPORT_SNAPSHOT"
	}
	res, err := pglogrepl.CreateReplicationSlot(ctx, c, r.slot, "pgoutput", pglogrepl.CreateReplicationSlotOptions{Mode: pglogrepl.LogicalReplication, SnapshotAction: action})
	if err != nil {
		pgcat.Close(c)
		if pgcat.IsCode(err, "53400") {
			return sdk.Faultf(sdk.CodeUnavailable, "make slot %s: all replication slots of %s are in use", r.slot, r.srv.Name()).Retry().Suggest("drop slots that nobody reads (SELECT * FROM pg_replication_slots), or raise max_replication_slots and restart the server")
		}
		return r.srv.Fault("make slot "+r.slot, err)
	}
	at, err := parseLSN(res.ConsistentPoint)
	if err != nil {
		pgcat.Close(c)
		return err
	}
	r.here.lsn, r.here.step, r.snap.at = at, 0, at
	if action == "NOEXPORT_SNAPSHOT" {
		pgcat.Close(c)
		return nil
	}
	// The snapshot lives as long as this connection sends nothing.
	r.snap.src = pgscan.Held(r.srv, res.SnapshotName, c)
	return nil
}

// connect starts the stream, waiting for whoever uses the slot now.
func (r *Reader) connect(ctx context.Context) error {
	deadline := time.Now().Add(r.cfg.SlotWait)
	for {
		c, in, err := r.srv.Replicate(ctx)
		if err != nil {
			return err
		}
		p, err := startPump(ctx, c, in, r.slot, r.publication, r.here.lsn, !r.cfg.NoStreaming)
		if err == nil {
			p.flushAll = r.cfg.Switches.FlushOff
			r.mu.Lock()
			r.pump = p
			low := r.low
			r.mu.Unlock()
			if r.watch == nil {
				r.watch = startWatch(r.srv, r.slot, r.cfg.Log, lagEvery)
			}
			return p.durable(low)
		}
		if !pgcat.IsCode(err, "55006") {
			return err
		}
		if time.Now().After(deadline) {
			return r.inUse(ctx)
		}
		t := time.NewTimer(200 * time.Millisecond)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

func (r *Reader) inUse(ctx context.Context) error {
	who := "another connection"
	rows, err := r.ask(ctx, `SELECT a.pid, a.usename, a.application_name, coalesce(a.client_addr::text, 'local') FROM pg_replication_slots s JOIN pg_stat_activity a ON a.pid = s.active_pid WHERE s.slot_name = $1`, r.slot)
	if err == nil && len(rows) > 0 {
		who = fmt.Sprintf("pid %s of user %s (%s) from %s", rows[0][0], rows[0][1], rows[0][2], rows[0][3])
	}
	return sdk.Faultf(sdk.CodeUnavailable, "slot %s is in use by %s; it was waited for %s", r.slot, who, r.cfg.SlotWait).Retry().
		Suggest("give each task a slot of its own; a connection that nobody holds any more ends after wal_sender_timeout, or by SELECT pg_terminate_backend(pid)")
}

// drop removes the slot; whoever uses it is waited for.
func (r *Reader) drop(ctx context.Context) error {
	deadline := time.Now().Add(r.cfg.SlotWait)
	for {
		err := r.asking(ctx, func() error {
			_, err := pgcat.Query(ctx, r.sql, "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = $1", r.slot)
			if pgcat.IsCode(err, "42704") {
				return nil
			}
			if pgcat.IsCode(err, "55006") {
				return errActive
			}
			return err
		})
		if err == nil || !isActive(err) {
			return err
		}
		if time.Now().After(deadline) {
			return r.inUse(ctx)
		}
		t := time.NewTimer(200 * time.Millisecond)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}
