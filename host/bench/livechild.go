package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"github.com/datalink-go/datalink/host/null"
)

// longest is how long a child may read.
const longest = 5 * time.Minute

// self is the CPU time of this process.
func self() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// readLivePipeline reads from the server with the plugin as a process, the host's
// pipeline and its null writer, until all rows have come.
func readLivePipeline(plugin string, spec *liveSpec) (r Reading, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	config, err := json.Marshal(map[string]any{
		"address": fmt.Sprintf("127.0.0.1:%d", spec.Port), "user": "root", "tls": map[string]any{"mode": "disabled"},
		"start": "position:" + spec.File + ":4", "tables": []string{"b.*"},
	})
	if err != nil {
		return r, err
	}
	sink := new(null.Sink)
	ended := make(chan error, 1)
	go func() { ended <- pipe(ctx, plugin, config, sink) }()
	all := func() time.Duration {
		sum := self()
		for _, pid := range family(os.Getpid())[1:] {
			sum += cpu(pid)
		}
		return sum
	}
	var begun time.Time
	var used time.Duration
	var first uint64
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return r, fmt.Errorf("it ended after %d rows: %w", sink.Totals().Rows, err)
		case <-tick.C:
		}
		t := sink.Totals()
		if first == 0 && t.Rows > 0 {
			first, begun, used = t.Rows, time.Now(), all()
		}
		if t.Rows >= uint64(spec.Rows) {
			r.Rows, r.Values, r.Seconds, r.CPU = t.Rows-first, t.Values, time.Since(begun).Seconds(), (all() - used).Seconds()
			break
		}
	}
	for _, pid := range family(os.Getpid())[1:] {
		if m, err := memoryOf(pid); err == nil {
			r.RSS = max(r.RSS, m.Peak)
		}
	}
	cancel()
	<-ended
	return r, nil
}

// readLiveGoMySQL decodes the log from the server and keeps nothing.
func readLiveGoMySQL(spec *liveSpec) (r Reading, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	y := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{
		ServerID: 4242, Flavor: spec.Kind, Host: "127.0.0.1", Port: uint16(spec.Port), User: "root", Logger: slog.New(slog.DiscardHandler),
	})
	defer y.Close()
	st, err := y.StartSync(mysql.Position{Name: spec.File, Pos: 4})
	if err != nil {
		return r, err
	}
	var begun time.Time
	var used time.Duration
	rows, first := 0, 0
	for rows < spec.Rows {
		ev, err := st.GetEvent(ctx)
		if err != nil {
			return r, err
		}
		e, ok := ev.Event.(*replication.RowsEvent)
		if !ok {
			continue
		}
		n := len(e.Rows)
		if t := ev.Header.EventType; t == replication.UPDATE_ROWS_EVENTv1 || t == replication.UPDATE_ROWS_EVENTv2 {
			n /= 2
		}
		if rows += n; first == 0 {
			first, begun, used = rows, time.Now(), self()
		}
	}
	r.Rows, r.Seconds, r.CPU = uint64(rows-first), time.Since(begun).Seconds(), (self() - used).Seconds()
	if m, err := memoryOf(os.Getpid()); err == nil {
		r.RSS = m.Peak
	}
	return r, nil
}
