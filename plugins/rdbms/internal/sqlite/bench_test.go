package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

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

const benchRows = 1000

// benchBlock makes one block of rows, so that values are decoded as in life.
func benchBlock(b *testing.B, s *batch.Schema, from int) []sdk.Change {
	b.Helper()
	out := batch.NewBuilder(batch.Limits{})
	must(b, out.BeginTx(batch.Tx{Begins: true}))
	for i := range benchRows {
		must(b, out.BeginRow(batch.Insert, s))
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
		changes[i] = sdk.Change{Op: sdk.Upsert, Kind: batch.Insert, Schema: e.Schema, Key: e.Key, After: e.After}
	}
	return changes
}

// BenchmarkWrite compares transactions of 1,000 rows through the writer (decode,
// fence, upserts, commit) with the same rows through database/sql, prepared
// INSERTs with values at hand and no progress. Both alternate in one run; the
// ratio is rows per second of the writer over those of the bare driver.
func BenchmarkWrite(b *testing.B) {
	file, bare := path(b), path(b)
	w := writer(b, Config{Path: file})
	if _, err := w.Claim(context.Background(), execution("x1", 1)); err != nil {
		b.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+bare+"?_journal_mode=WAL&_synchronous=FULL")
	must(b, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.Exec(createText(benchSchema(), "bench"))
	must(b, err)
	stmt, err := db.Prepare("INSERT INTO bench VALUES (?,?,?,?,?,?,?)")
	must(b, err)
	s := benchSchema()
	var ratios []float64
	var ours, theirs time.Duration
	rounds, n := 0, uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		var a, c time.Duration
		for range 5 {
			changes := benchBlock(b, s, int(n)*benchRows)
			n++
			start := time.Now()
			must(b, write(w, next(0, n), changes...))
			a += time.Since(start)
			values := bareValues(int(n-1) * benchRows)
			start = time.Now()
			must(b, bareWrite(db, stmt, values))
			c += time.Since(start)
		}
		ratios = append(ratios, c.Seconds()/a.Seconds())
		ours, theirs, rounds = ours+a, theirs+c, rounds+5
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[0], "ratio-min")
	b.ReportMetric(ratios[len(ratios)/2], "ratio-median")
	b.ReportMetric(ratios[len(ratios)-1], "ratio-max")
	b.ReportMetric(float64(rounds*benchRows)/ours.Seconds(), "rows/s")
	b.ReportMetric(float64(rounds*benchRows)/theirs.Seconds(), "bare-rows/s")
}

func bareValues(from int) [][]any {
	out := make([][]any, benchRows)
	for i := range out {
		out[i] = []any{
			int64(from + i), int64(i * 7), int64(i * 13), fmt.Sprintf("customer %d of the list", i), fmt.Sprintf("%d.%02d", i*31, i%100),
			fmt.Sprintf("2026-03-%02d %02d:00:00", 1+i%28, i%24), "a note of sixty characters that stands for some longer text.",
		}
	}
	return out
}

func bareWrite(db *sql.DB, stmt *sql.Stmt, values [][]any) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	st := tx.Stmt(stmt)
	for _, v := range values {
		if _, err := st.Exec(v...); err != nil {
			return err
		}
	}
	return tx.Commit()
}
