package reader

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	_ "github.com/go-sql-driver/mysql"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// fillOLTP writes transactions of ten single-row statements.
func fillOLTP(b *testing.B, s *stack.Server, transactions int) {
	b.Helper()
	s.SQL("CREATE DATABASE o; CREATE TABLE o.t (id BIGINT PRIMARY KEY, k INT, u INT UNSIGNED, name VARCHAR(40), amt DECIMAL(12,2), created DATETIME, note VARCHAR(60));")
	var q strings.Builder
	for i := range transactions {
		q.WriteString("BEGIN;")
		for k := range 5 {
			id := i*5 + k
			fmt.Fprintf(&q, "INSERT INTO o.t VALUES (%d,%d,%d,'customer number %d',%d.%02d,'2026-01-02 03:04:05','a note of some length %d');", id, id%97, id, id, id%10000, id%100, id)
		}
		for k := range 4 {
			fmt.Fprintf(&q, "UPDATE o.t SET k = k + 1, note = 'changed %d' WHERE id = %d;", i, i*5+k)
		}
		fmt.Fprintf(&q, "DELETE FROM o.t WHERE id = %d;COMMIT;\n", i*5+4)
	}
	s.SQL(q.String())
}

// BenchmarkServer reads the same log from the same server: this reader into packed
// blocks, go-mysql with its defaults, and a bare drain of the stream that looks at
// the heads of events only. Transactions have ten single-row statements.
func BenchmarkServer(b *testing.B) {
	const transactions = 10_000
	for _, kind := range []string{"mariadb", "mysql"} {
		b.Run(kind, func(b *testing.B) {
			s := stack.Start(b, kind, "--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0", "--max-binlog-size=1G")
			fillOLTP(b, s, transactions)
			cfg := liveConfig("earliest", s.Addr())
			cfg.TLS.Mode = "disabled"
			end := cfg
			end.Start = "latest"
			final := ""
			{
				r, err := New(sdk.Env{}, end)
				if err != nil {
					b.Fatal(err)
				}
				if err := r.Open(b.Context(), sdk.Execution{Task: "end"}, nil, nil); err != nil {
					b.Fatal(err)
				}
				final = string(r.mark(nil))
				_ = r.Close(b.Context())
			}
			out := batch.NewBuilder(batch.Limits{})
			b.Run("reader", func(b *testing.B) {
				rows, from := 0, cpu()
				for b.Loop() {
					r, err := New(sdk.Env{}, cfg)
					if err != nil {
						b.Fatal(err)
					}
					if err := r.Open(b.Context(), sdk.Execution{Task: "bench"}, nil, nil); err != nil {
						b.Fatal(err)
					}
					out.Forget()
					for string(r.mark(nil)) != final {
						out.Reset()
						if err := r.Next(b.Context(), out); err != nil {
							b.Fatal(err)
						}
						if _, err := out.Finish(); err != nil {
							b.Fatal(err)
						}
						rows += out.Len()
					}
					_ = r.Close(b.Context())
				}
				report(b, rows, from)
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				b.ReportMetric(float64(m.Sys)/1e6, "MB")
			})
			b.Run("go-mysql", func(b *testing.B) {
				rows, from := 0, cpu()
				for b.Loop() {
					rows += drainGoMySQL(b, s, kind, transactions*10)
				}
				report(b, rows, from)
			})
			b.Run("drain", func(b *testing.B) {
				rows, from := 0, cpu()
				for b.Loop() {
					r, err := New(sdk.Env{}, cfg)
					if err != nil {
						b.Fatal(err)
					}
					at, _ := parseSpot("none")
					at.kind = spotFile
					at.file.setName("binlog.000001")
					at.file.off = 4
					err = r.view(b.Context(), &at, func(scan *binlog.Scanner, next func(*binlog.Event) error) error {
						var ev binlog.Event
						for n := 0; n < transactions*10; {
							if err := next(&ev); err != nil {
								return err
							}
							if ev.Type.IsRows() {
								n++
								rows++
							}
						}
						return nil
					})
					if err != nil {
						b.Fatal(err)
					}
				}
				report(b, rows, from)
			})
		})
	}
}

func drainGoMySQL(b *testing.B, s *stack.Server, kind string, want int) int {
	y := replication.NewBinlogSyncer(replication.BinlogSyncerConfig{ServerID: 4242, Flavor: kind, Host: s.Host, Port: uint16(s.Port), User: "root", Logger: slog.New(slog.DiscardHandler)})
	defer y.Close()
	st, err := y.StartSync(mysql.Position{Name: "binlog.000001", Pos: 4})
	if err != nil {
		b.Fatal(err)
	}
	rows := 0
	for rows < want {
		ev, err := st.GetEvent(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if e, ok := ev.Event.(*replication.RowsEvent); ok {
			n := len(e.Rows)
			if t := ev.Header.EventType; t == replication.UPDATE_ROWS_EVENTv1 || t == replication.UPDATE_ROWS_EVENTv2 {
				n /= 2
			}
			rows += n
		}
	}
	return rows
}

// TestLatency measures from before an autocommit insert is sent until its row is in
// a block, at LATENCY_RATE transactions a second (2,000 for `make bench`; left out
// otherwise).
func TestLatency(t *testing.T) {
	rate := 0
	if _, err := fmt.Sscan(os.Getenv("LATENCY_RATE"), &rate); err != nil {
		t.Skip("optional: LATENCY_RATE=2000 runs it")
	}
	for _, kind := range []string{"mariadb", "mysql"} {
		t.Run(kind, func(t *testing.T) {
			s := stack.Start(t, kind, "--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0")
			s.SQL("CREATE DATABASE o; CREATE TABLE o.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, sent BIGINT);")
			cfg := liveConfig("latest", s.Addr())
			cfg.TLS.Mode = "disabled"
			p := pull(t, cfg, nil, nil)
			db, err := sql.Open("mysql", "root@tcp("+s.Addr()+")/o")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			const seconds, writers = 8, 8
			var group sync.WaitGroup
			for range writers {
				group.Go(func() {
					c, err := db.Conn(context.Background())
					if err != nil {
						t.Error(err)
						return
					}
					defer c.Close()
					tick := time.NewTicker(time.Second * writers / time.Duration(rate))
					defer tick.Stop()
					for range rate * seconds / writers {
						<-tick.C
						if _, err := c.ExecContext(context.Background(), fmt.Sprintf("INSERT INTO t (sent) VALUES (%d)", time.Now().UnixNano())); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			var took []time.Duration
			var blk batch.Block
			var vals []batch.Value
			begun := time.Now()
			for len(took) < rate*seconds {
				p.out.Reset()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				err := p.r.Next(ctx, p.out)
				cancel()
				if err != nil {
					t.Fatal(err, len(took))
				}
				data, err := p.out.Finish()
				if err != nil {
					t.Fatal(err)
				}
				now := time.Now().UnixNano()
				if err := blk.Decode(data, p.reg, batch.Limits{}); err != nil {
					t.Fatal(err)
				}
				for i := range p.out.Len() {
					var e batch.Event
					if err := blk.Event(i, &e); err != nil {
						t.Fatal(err)
					}
					if e.Kind != batch.Insert {
						continue
					}
					if vals, err = e.After.Values(vals); err != nil {
						t.Fatal(err)
					}
					took = append(took, time.Duration(now-vals[1].Int64()))
				}
			}
			group.Wait()
			all := time.Since(begun)
			slices.Sort(took)
			at := func(q float64) time.Duration { return took[int(q*float64(len(took)-1))].Round(10 * time.Microsecond) }
			t.Logf("%d transactions in %s, %.0f/s: p50 %s, p90 %s, p99 %s, p99.9 %s, max %s", len(took), all.Round(time.Millisecond), float64(len(took))/all.Seconds(), at(.5), at(.9), at(.99), at(.999), at(1))
			for limit, i := 250*time.Microsecond, 0; i < len(took); limit *= 2 {
				n := i
				for i < len(took) && took[i] <= limit {
					i++
				}
				t.Logf("≤ %8s %6d %s", limit, i-n, strings.Repeat("#", 60*(i-n)/len(took)))
			}
		})
	}
}
