package postgres

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

func benchSchema() *batch.Schema {
	return &batch.Schema{ID: 1, Table: "bench", Key: []int{0}, PrimaryKey: true, Columns: []batch.Column{
		{Name: "id", Type: batch.Int64},
		{Name: "k", Type: batch.Int32},
		{Name: "u", Type: batch.Uint32},
		{Name: "name", Type: batch.String},
		{Name: "amt", Type: batch.Decimal, Precision: 12, Scale: 2},
		{Name: "created", Type: batch.DateTime},
		{Name: "note", Type: batch.String},
	}}
}

// benchBlock makes one block of rows, so that values are decoded as in life.
func benchBlock(b *testing.B, s *batch.Schema, from, rows int, kind batch.Kind) []sdk.Change {
	b.Helper()
	out := batch.NewBuilder(batch.Limits{})
	must(b, out.BeginTx(batch.Tx{Begins: true}))
	for i := range rows {
		must(b, out.BeginRow(kind, s))
		out.BeginImage(batch.AfterImage)
		out.PutInt(int64(from + i))
		out.PutInt(int64(i * 7))
		out.PutUint(uint64(i * 13))
		out.PutString(fmt.Sprintf("customer %d of the list", i))
		out.PutString(fmt.Sprintf("%d.%02d", i*31, i%100))
		out.PutInt(batch.Civil{Year: 2026, Month: 3, Day: 1 + i%28, Hour: i % 24}.Pack())
		out.PutString("a note of sixty characters that stands for some longer text.")
		out.EndImage()
		must(b, out.EndRow())
	}
	must(b, out.EndTx(true, nil, []byte("p")))
	data, err := out.Finish()
	must(b, err)
	reg := batch.NewRegistry()
	must(b, reg.Add(s))
	blk := &batch.Block{}
	must(b, blk.Decode(data, reg, batch.Limits{}))
	changes := make([]sdk.Change, blk.Len())
	for i := range changes {
		var e batch.Event
		must(b, blk.Event(i, &e))
		changes[i] = sdk.Change{Op: sdk.Upsert, Kind: kind, Schema: s, Key: e.Key, After: e.After}
	}
	return changes
}

// bareRows are the columns of a plain program, at hand as Go values.
type bareRows struct {
	id        []int64
	k         []int32
	u         []int64
	name, amt []string
	created   []time.Time
	note      []string
}

func newBareRows(from, rows int) *bareRows {
	r := &bareRows{}
	for i := range rows {
		r.id, r.k, r.u = append(r.id, int64(from+i)), append(r.k, int32(i*7)), append(r.u, int64(i*13))
		r.name, r.amt = append(r.name, fmt.Sprintf("customer %d of the list", i)), append(r.amt, fmt.Sprintf("%d.%02d", i*31, i%100))
		r.created = append(r.created, time.Date(2026, 3, 1+i%28, i%24, 0, 0, 0, time.UTC))
		r.note = append(r.note, "a note of sixty characters that stands for some longer text.")
	}
	return r
}

const bareUpsert = `INSERT INTO bare (id, k, u, name, amt, created, note) SELECT a, b, c, d, e::numeric, f, g
FROM unnest($1::bigint[], $2::int[], $3::bigint[], $4::text[], $5::text[], $6::timestamp[], $7::text[]) AS x(a, b, c, d, e, f, g)
ON CONFLICT (id) DO UPDATE SET k = excluded.k, u = excluded.u, name = excluded.name, amt = excluded.amt, created = excluded.created, note = excluded.note`

// BenchmarkWrite compares transactions of 1,000 rows through the writer (decode,
// fence, upserts, commit) with the same rows through a plain pgx program: unnest,
// values at hand, no progress, fsync on for both. Both alternate in one run; the
// ratio is rows per second of the writer over those of the plain program. Half of
// the rows are there already.
func BenchmarkWrite(b *testing.B) {
	for _, rows := range []int{10, 1000} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) { benchWrite(b, rows, batch.Insert) })
	}
	b.Run("snapshot 10000", func(b *testing.B) { benchWrite(b, 10000, batch.Read) })
}

func benchWrite(b *testing.B, rows int, kind batch.Kind) {
	ctx := context.Background()
	d := start(b, "-c", "fsync=on").db(b)
	w := d.writer(b, Config{})
	claim(b, w, execution("x1", 1))
	_, err := w.Prepare(ctx, benchSchema())
	must(b, err)
	d.rows(b, "CREATE TABLE bare (id bigint PRIMARY KEY, k int, u bigint, name text, amt numeric(12,2), created timestamp, note text); SELECT 1")
	c, err := pgx.Connect(ctx, d.url)
	must(b, err)
	defer c.Close(ctx) //nolint:errcheck
	s := benchSchema()
	var ratios []float64
	var ours, theirs time.Duration
	rounds, n := 0, uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		var x, y time.Duration
		for range max(1, 5000/rows) {
			from := int(n) * rows / 2
			changes := benchBlock(b, s, from, rows, kind)
			bare := newBareRows(from, rows)
			n++
			began := time.Now()
			must(b, write(w, nextOf(0, n), changes...))
			x += time.Since(began)
			began = time.Now()
			tx, err := c.Begin(ctx)
			must(b, err)
			_, err = tx.Exec(ctx, bareUpsert, bare.id, bare.k, bare.u, bare.name, bare.amt, bare.created, bare.note)
			must(b, err)
			must(b, tx.Commit(ctx))
			y += time.Since(began)
			rounds++
		}
		ratios = append(ratios, y.Seconds()/x.Seconds())
		ours, theirs = ours+x, theirs+y
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[0], "ratio-min")
	b.ReportMetric(ratios[len(ratios)/2], "ratio-median")
	b.ReportMetric(ratios[len(ratios)-1], "ratio-max")
	b.ReportMetric(float64(rounds*rows)/ours.Seconds(), "rows/s")
	b.ReportMetric(float64(rounds*rows)/theirs.Seconds(), "bare-rows/s")
	b.ReportMetric(peak(b), "peak-MB")
}

// peak is the largest resident size of this process so far.
func peak(b *testing.B) float64 {
	b.Helper()
	data, err := os.ReadFile("/proc/self/status")
	must(b, err)
	for line := range strings.Lines(string(data)) {
		if kb, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.Atoi(strings.Fields(kb)[0])
			must(b, err)
			return float64(n) / 1024
		}
	}
	return 0
}
