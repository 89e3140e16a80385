package pglog

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgcat"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// backlog writes transactions of ten rows with twenty columns, about 310 bytes a
// row, behind a slot.
func backlog(b *testing.B, rows int) (*stack.Server, lsn) {
	srv := server(b, "-c", "fsync=off", "-c", "max_wal_size=4GB", "-c", "logical_decoding_work_mem=64MB")
	var cols []string
	var vals []string
	for i := range 19 {
		switch i % 6 {
		case 0:
			cols, vals = append(cols, fmt.Sprintf("c%d bigint", i)), append(vals, "i * 7919")
		case 1:
			cols, vals = append(cols, fmt.Sprintf("c%d varchar(40)", i)), append(vals, "'text of row ' || i")
		case 2:
			cols, vals = append(cols, fmt.Sprintf("c%d numeric(12,2)", i)), append(vals, "i / 100.0")
		case 3:
			cols, vals = append(cols, fmt.Sprintf("c%d timestamptz", i)), append(vals, "'2026-01-01'::timestamptz + i * interval '1 second'")
		case 4:
			cols, vals = append(cols, fmt.Sprintf("c%d int", i)), append(vals, "i % 1000")
		case 5:
			cols, vals = append(cols, fmt.Sprintf("c%d text", i)), append(vals, "repeat('x', 30)")
		}
	}
	sqlText(srv, "CREATE TABLE w (id bigint PRIMARY KEY, "+strings.Join(cols, ", ")+"); CREATE PUBLICATION kit FOR ALL TABLES; SELECT pg_create_logical_replication_slot('kit', 'pgoutput')")
	sqlText(srv, fmt.Sprintf(`CREATE PROCEDURE fill() LANGUAGE plpgsql AS $$ BEGIN FOR k IN 0..%d LOOP
		INSERT INTO w SELECT i, %s FROM generate_series(k * 10 + 1, k * 10 + 10) i; COMMIT; END LOOP; END $$; CALL fill();`, rows/10-1, strings.Join(vals, ", ")))
	end, err := parseLSN(sqlText(srv, "SELECT pg_current_wal_insert_lsn()"))
	if err != nil {
		b.Fatal(err)
	}
	return srv, end
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkStream reads a backlog over the wire into blocks, against pglogrepl that
// receives and parses the same messages and does nothing with them. The server's
// own decoding is part of the time, not of the CPU.
func BenchmarkStream(b *testing.B) {
	const rows = 100000
	srv, end := backlog(b, rows)
	report := func(b *testing.B, n int, began time.Time, before time.Duration) {
		if n < rows {
			b.Fatalf("got %d rows, want %d", n, rows)
		}
		b.ReportMetric(float64(n)/time.Since(began).Seconds(), "rows/s")
		b.ReportMetric(float64((cpu()-before).Nanoseconds())/float64(n)/1000, "cpu-µs/row")
		b.ReportMetric(0, "ns/op")
	}
	b.Run("reader", func(b *testing.B) {
		for range b.N {
			r, err := New(Config{URL: url(srv) + "?sslmode=disable", Slot: "kit", Publication: "kit", Start: "latest"})
			if err != nil {
				b.Fatal(err)
			}
			ctx := context.Background()
			if err := r.Open(ctx, sdk.Execution{}, nil, nil); err != nil {
				b.Fatal(err)
			}
			out := batch.NewBuilder(batch.Limits{})
			n, began, before := 0, time.Now(), cpu()
			for n < rows {
				out.Reset()
				if err := r.Next(ctx, out); err != nil {
					b.Fatal(err)
				}
				n += out.Len()
				if _, err := out.Finish(); err != nil {
					b.Fatal(err)
				}
			}
			report(b, n, began, before)
			_ = r.Close(ctx)
		}
	})
	b.Run("pglogrepl", func(b *testing.B) {
		for range b.N {
			srv, err := pgcat.Parse(url(srv) + "?sslmode=disable")
			if err != nil {
				b.Fatal(err)
			}
			ctx := context.Background()
			c, _, err := srv.Replicate(ctx)
			if err != nil {
				b.Fatal(err)
			}
			args := []string{"proto_version '1'", "publication_names 'kit'"}
			if err := pglogrepl.StartReplication(ctx, c, "kit", 0, pglogrepl.StartReplicationOptions{Mode: pglogrepl.LogicalReplication, PluginArgs: args}); err != nil {
				b.Fatal(err)
			}
			n, began, before := 0, time.Now(), cpu()
			for at := lsn(0); n < rows && at < end; {
				m, err := c.ReceiveMessage(ctx)
				if err != nil {
					b.Fatal(err)
				}
				d, ok := m.(*pgproto3.CopyData)
				if !ok || d.Data[0] != pglogrepl.XLogDataByteID {
					continue
				}
				x, err := pglogrepl.ParseXLogData(d.Data[1:])
				if err != nil {
					b.Fatal(err)
				}
				msg, err := pglogrepl.Parse(x.WALData)
				if err != nil {
					b.Fatal(err)
				}
				if _, ok := msg.(*pglogrepl.InsertMessage); ok {
					n++
				}
			}
			report(b, n, began, before)
			pgcat.Close(c)
		}
	})
	b.Run("decode", func(b *testing.B) { benchDecode(b, srv) })
}

// benchDecode decodes messages that lie in memory.
func benchDecode(b *testing.B, srv *stack.Server) {
	r, err := New(Config{URL: url(srv) + "?sslmode=disable", Slot: "kit", Publication: "kit", Start: "latest"})
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	if err := r.Open(ctx, sdk.Execution{}, nil, nil); err != nil {
		b.Fatal(err)
	}
	defer r.Close(ctx)
	if err := r.connect(ctx); err != nil {
		b.Fatal(err)
	}
	var kept []*slab
	n := 0
	for n < 20000 {
		s := <-r.pump.full
		kept = append(kept, s)
		for _, m := range s.msgs {
			if m.to > m.from && s.data[m.from] == 'I' {
				n++
			}
		}
	}
	out := batch.NewBuilder(batch.Limits{})
	b.ReportAllocs()
	b.ResetTimer()
	done := 0
	for done < b.N {
		for _, s := range kept {
			for i := range s.msgs {
				m := &s.msgs[i]
				if m.from == m.to {
					continue
				}
				if err := r.message(ctx, out, s.data[m.from:m.to]); err != nil {
					b.Fatal(err)
				}
				if s.data[m.from] == 'I' {
					done++
				}
				if out.Full() {
					if err := r.pause(out); err != nil {
						b.Fatal(err)
					}
					r.handed.publish(r.here)
					if _, err := out.Finish(); err != nil {
						b.Fatal(err)
					}
					out.Reset()
				}
			}
		}
		r.tx.active = false
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(done), "ns/row")
}
