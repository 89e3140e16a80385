package pglog

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgcat"
)

// Lag is how far the task is behind the server, as the server sees it.
type Lag struct {
	Retained  int64  // bytes of log that the slot keeps from being removed
	Unflushed int64  // bytes of log behind what is durable at the target
	Left      int64  // bytes until the slot is lost; -1 = no limit
	Status    string // reserved, extended, unreserved, lost
}

const lagEvery = time.Minute

// watch logs what the slot holds back, on a connection of its own.
type watch struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func startWatch(srv *pgcat.Server, slot string, log *slog.Logger, every time.Duration) *watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watch{cancel: cancel}
	w.wg.Add(1)
	go func() {
		defer w.wg.Done()
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			lag, err := readLag(ctx, srv, slot)
			switch {
			case ctx.Err() != nil:
				return
			case err != nil:
				log.Debug("the state of the slot was not to be had", "slot", slot, "cause", err)
			case lag.Status == "unreserved" || lag.Status == "lost" || lag.Left >= 0 && lag.Left < lag.Retained/4:
				log.Warn("the slot is about to lose log that the task needs", "slot", slot, "walStatus", lag.Status, "retainedBytes", lag.Retained, "leftBytes", lag.Left, "unflushedBytes", lag.Unflushed)
			default:
				log.Info("log kept by the slot", "slot", slot, "walStatus", lag.Status, "retainedBytes", lag.Retained, "leftBytes", lag.Left, "unflushedBytes", lag.Unflushed)
			}
		}
	}()
	return w
}

func (w *watch) close() {
	w.cancel()
	w.wg.Wait()
}

func readLag(ctx context.Context, srv *pgcat.Server, slot string) (Lag, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, err := srv.Connect(ctx)
	if err != nil {
		return Lag{}, err
	}
	defer pgcat.Close(c)
	rows, err := pgcat.Query(ctx, c, `SELECT coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::bigint, coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn), 0)::bigint,
		coalesce(safe_wal_size, -1), coalesce(wal_status, '') FROM pg_replication_slots WHERE slot_name = $1`, slot)
	if err != nil || len(rows) == 0 {
		return Lag{}, err
	}
	v := rows[0]
	return Lag{Retained: num(v[0]), Unflushed: num(v[1]), Left: num(v[2]), Status: string(v[3])}, nil
}

func num(p []byte) int64 {
	var n int64
	neg := len(p) > 0 && p[0] == '-'
	for _, d := range p {
		if d >= '0' && d <= '9' {
			n = n*10 + int64(d-'0')
		}
	}
	if neg {
		return -n
	}
	return n
}
