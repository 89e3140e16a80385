package reader

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/shopspring/decimal"

	"github.com/datalink-go/datalink/plugins/internal/charset"
	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
	"github.com/datalink-go/datalink/plugins/mysql/internal/rows"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// oracleRow is one row event's images as go-mysql decodes them.
type oracleEvent struct {
	table string
	kind  string
	rows  [][]any
	skip  [][]int
}

// logFile returns the bytes of a sample, inflated.
func logFile(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var src io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if src, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	data, err := io.ReadAll(src)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func oracle(t *testing.T, data []byte, maria bool) (out []oracleEvent, err error) {
	t.Helper()
	p := replication.NewBinlogParser()
	p.SetTimestampStringLocation(time.UTC)
	p.SetUseDecimal(true)
	p.SetVerifyChecksum(false)
	p.SetRenderJSONAsMySQLText(true)
	if maria {
		p.SetFlavor("mariadb")
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("go-mysql panics: %v", r)
		}
	}()
	// It does not know MariaDB's COMPRESSED columns: their table is left out.
	p.SetRowsEventDecodeFunc(func(e *replication.RowsEvent, data []byte) error {
		pos, err := e.DecodeHeader(data)
		if err != nil || unsupported(e.Table) {
			return err
		}
		return e.DecodeData(pos, data)
	})
	var on func(e *replication.BinlogEvent) error
	on = func(e *replication.BinlogEvent) error {
		switch v := e.Event.(type) {
		case *replication.RowsEvent:
			out = append(out, oracleEvent{fmt.Sprintf("%s.%s", v.Table.Schema, v.Table.Table), v.Type().String(), v.Rows, v.SkippedColumns})
		case *replication.TransactionPayloadEvent:
			for _, in := range v.Events {
				if err := on(in); err != nil {
					return err
				}
			}
		}
		return nil
	}
	err = p.ParseReader(bytes.NewReader(data[4:]), on)
	return out, err
}

func unsupported(t *replication.TableMapEvent) bool {
	return bytes.IndexByte(t.ColumnType, 140) >= 0 || bytes.IndexByte(t.ColumnType, 141) >= 0
}

// own decodes every row event of a file in the order of the file, whatever
// becomes of its transaction, under the layouts that the reader finds.
func own(t *testing.T, path string) (out []oracleEvent, schemas []*rows.Layout, vals [][][]batch.Value) {
	t.Helper()
	r, err := New(sdk.Env{}, Config{Files: sdk.Strings{path}, Start: "earliest", DDL: "apply", OnUnknownTable: "positional", OnStatement: "ignore", OnlineChanges: "off"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := r.Open(ctx, sdk.Execution{}, nil, nil); err != nil {
		t.Fatal(err)
	}
	defer r.Close(ctx)
	r.filter = newFilter([]string{"*.*"})
	reg := batch.NewRegistry()
	b := batch.NewBuilder(batch.Limits{})
	var work func(s *binlog.Scanner)
	work = func(s *binlog.Scanner) {
		var ev binlog.Event
		for {
			if err := s.Next(&ev); err == io.EOF {
				return
			} else if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			switch {
			case ev.Type == binlog.TableMap:
				if err := r.tableMap(&ev); err != nil {
					t.Fatal(err)
				}
			case ev.Type == binlog.Query || ev.Type == binlog.QueryCompressed:
				var st binlog.Statement
				if err := binlog.DecodeQuery(ev.Type, ev.Body, &st); err != nil {
					t.Fatal(err)
				}
				if v, _ := binlog.Control(st.Text); v == binlog.Other {
					r.apply(&st)
				}
			case ev.Type == binlog.TransactionPayload:
				var p binlog.Payload
				if err := binlog.DecodePayload(ev.Body, &p); err != nil {
					t.Fatal(err)
				}
				d, err := binlog.NewDecompressor(0)
				if err != nil {
					t.Fatal(err)
				}
				in, err := d.Open(bytes.NewReader(p.Data))
				if err != nil {
					t.Fatal(err)
				}
				f := s.Format
				f.Checksum = false
				work(binlog.NewScanner("payload", in, 0, f, 0))
				d.Close()
			case ev.Type == binlog.StartEncryption:
				return
			case ev.Type.IsRows():
				id, _, err := rows.TableID(ev.Type, &s.Format, ev.Body)
				if err != nil {
					t.Fatal(err)
				}
				tb := r.tables.byID[id]
				if tb == nil || tb.layout == nil {
					t.Fatalf("%s: no layout for table id %d: %v", s.Place(ev.At), id, tb)
				}
				var it rows.Iter
				if err := it.Open(ev.Type, &s.Format, tb.layout, ev.Body); err != nil {
					t.Fatal(err)
				}
				it.KeepPast()
				b.Reset()
				_ = b.BeginTx(batch.Tx{Begins: true})
				for it.More() {
					if err := it.Next(b); err != nil {
						t.Logf("%s: %s: %v", path, s.Place(ev.At), err)
						break
					}
				}
				_ = b.EndTx(true, nil, []byte("x"))
				data, err := b.Finish()
				if err != nil {
					t.Fatal(err)
				}
				var blk batch.Block
				if err := blk.Decode(bytes.Clone(data), reg, batch.Limits{}); err != nil {
					t.Fatal(err)
				}
				e := oracleEvent{table: tb.name}
				var images [][]batch.Value
				for i := range blk.Len() {
					var ev batch.Event
					if err := blk.Event(i, &ev); err != nil {
						t.Fatal(err)
					}
					for _, im := range []batch.Image{ev.Before, ev.After} {
						if im.IsZero() {
							continue
						}
						e.kind = ev.Kind.String()
						v, err := im.Values(nil)
						if err != nil {
							t.Fatal(err)
						}
						images = append(images, v)
					}
				}
				out, schemas, vals = append(out, e), append(schemas, tb.layout), append(vals, images)
			}
		}
	}
	work(r.scan)
	return out, schemas, vals
}

// TestOracle compares each value of each row of every file with what go-mysql
// v1.16.0 makes of it. canonical says how values of the two are brought into one
// form; a difference must be in differences with its reason.
func TestOracle(t *testing.T) {
	files := 0
	for _, dir := range samples(t) {
		paths, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, p := range paths {
			base := filepath.Base(p)
			if st, err := os.Stat(p); err != nil || st.IsDir() || strings.HasSuffix(base, ".md") || base[0] == '.' {
				continue
			}
			files++
			t.Run(base, func(t *testing.T) { compareFile(t, p) })
		}
	}
	if files == 0 {
		t.Fatal("no files")
	}
}

func compareFile(t *testing.T, path string) {
	data := logFile(t, path)
	maria := bytes.Contains(data[:min(len(data), 200)], []byte("MariaDB"))
	want, err := oracle(t, data, maria)
	base := filepath.Base(path)
	if err != nil && oracleStops[base] == "" {
		t.Fatalf("go-mysql: %v", err)
	}
	kinds, layouts, got := own(t, path)
	if len(got) != len(want) && oracleStops[base] == "" {
		t.Fatalf("%d row events, go-mysql has %d", len(got), len(want))
	}
	values := 0
	for i := range min(len(want), len(got)) {
		w, cols := &want[i], layouts[i].Schema.Columns
		if w.rows == nil {
			t.Logf("row event %d of %s: go-mysql does not know its column types", i, w.table)
			continue
		}
		if len(w.rows) != len(got[i]) && !shortened(base, layouts[i].Schema.Name()) {
			t.Fatalf("row event %d of %s: %d images, go-mysql has %d", i, w.table, len(got[i]), len(w.rows))
		}
		for k := range min(len(w.rows), len(got[i])) {
			places := layouts[i].Places()
			absent := map[int]bool{}
			for _, c := range w.skip[k] {
				absent[c] = true
			}
			for c, v := range w.rows[k] {
				at := places[c]
				if at < 0 {
					continue
				}
				values++
				have := canonicalOwn(&cols[at], &got[i][k][at])
				if absent[c] {
					if s := got[i][k][at].State; s != batch.Absent && s != batch.Unchanged && !filled(kinds[i].kind) {
						t.Errorf("row event %d, %s.%s: %s, go-mysql says that it is not there", i, w.table, cols[at].Name, have)
					}
					continue
				}
				expect := canonicalOracle(&cols[at], v)
				d := difference{c: &cols[at], have: have, expect: expect, v: v}
				if k%2 == 1 && kinds[i].kind == "update" {
					d.before = canonicalOwn(&cols[at], &got[i][k-1][at])
				}
				if have != expect && !d.known() {
					t.Errorf("row event %d image %d, %s.%s (%s): %.200q, go-mysql has %.200q", i, k, w.table, cols[at].Name, cols[at].Native, have, expect)
				}
			}
		}
	}
	t.Logf("%d row events, %d values", len(want), values)
}

// oracleStops are files that go-mysql does not read to their end.
var oracleStops = map[string]string{
	"mariadb1011-encrypted.000001": "encrypted: nothing of it can be read, and go-mysql panics",
}

// shortened are tables whose rows we stop in, and go-mysql does not.
func shortened(file, table string) bool {
	return file == "mysql97-partialjson.000001" && strings.HasPrefix(table, "pj.")
}

// filled reports whether columns that are left out hold their default here: in
// rows that were inserted.
func filled(kind string) bool { return kind == "insert" }

func canonicalOwn(c *batch.Column, v *batch.Value) string {
	switch {
	case v.State == batch.Raw:
		_, data, _ := v.Raw()
		return "raw " + string(data)
	case v.State == batch.Present && c.Type == batch.Bit:
		var n uint64
		for _, b := range v.Bytes() {
			n = n<<8 | uint64(b)
		}
		return strconv.FormatInt(int64(n), 10)
	case v.State == batch.Present && (c.Type == batch.Bytes || c.Type == batch.Geometry || c.Type == batch.Vector || c.Type == batch.UUID):
		return string(v.Bytes())
	case v.State == batch.Present && c.Type == batch.Year:
		return strconv.FormatUint(v.Uint64(), 10)
	case v.State == batch.Present && c.Type == batch.JSON:
		return canonicalJSON(string(v.Bytes()))
	}
	return render(c, v)
}

// canonicalOracle brings a value of go-mysql into the form of canonicalOwn. The
// sign of integers is taken from the schema, since go-mysql knows it only where
// the log has it; text is converted, labels are looked up.
func canonicalOracle(c *batch.Column, v any) string {
	integer := func(bits int, n int64) string {
		if strings.HasPrefix(c.Type.String(), "uint") {
			return strconv.FormatUint(uint64(n)&(1<<(bits-1)<<1-1), 10)
		}
		return strconv.FormatInt(n, 10)
	}
	bits := map[batch.Type]int{batch.Int8: 8, batch.Uint8: 8, batch.Int16: 16, batch.Uint16: 16, batch.Int32: 32, batch.Uint32: 32, batch.Int64: 64, batch.Uint64: 64}[c.Type]
	if strings.HasPrefix(c.Native, "mediumint") {
		bits = 24
	}
	switch v := v.(type) {
	case nil:
		return null
	case int8:
		return integer(bits, int64(v))
	case int16:
		return integer(bits, int64(v))
	case int32:
		return integer(bits, int64(v))
	case int:
		return strconv.Itoa(v)
	case uint8:
		return strconv.FormatUint(uint64(v), 10)
	case uint16:
		return strconv.FormatUint(uint64(v), 10)
	case uint32:
		return strconv.FormatUint(uint64(v), 10)
	case uint64:
		return strconv.FormatUint(v, 10)
	case int64:
		switch {
		case c.Type == batch.Enum:
			if v == 0 {
				return ""
			}
			return c.Values[v-1]
		case c.Type == batch.Set:
			var l []string
			for i, s := range c.Values {
				if uint64(v)&(1<<i) != 0 {
					l = append(l, s)
				}
			}
			return strings.Join(l, ",")
		case bits > 0:
			return integer(bits, v)
		}
		return strconv.FormatInt(v, 10)
	case float32:
		return strconv.FormatFloat(float64(v), 'g', -1, 64)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case decimal.Decimal:
		return v.StringFixed(int32(c.Scale))
	case []byte:
		return canonicalText(c, v)
	case string:
		if c.Type == batch.JSON {
			return canonicalJSON(v)
		}
		return canonicalText(c, []byte(v))
	}
	return fmt.Sprintf("%T %v", v, v)
}

func canonicalText(c *batch.Column, v []byte) string {
	if c.Type == batch.String {
		if dec := charset.For(c.Charset); dec != nil {
			if out, ok := dec(nil, v); ok {
				return string(out)
			}
			return "raw " + string(v)
		}
	}
	return string(v)
}

func canonicalJSON(s string) string {
	if s == "" {
		return "null"
	}
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var b strings.Builder
	for {
		t, err := dec.Token()
		if err == io.EOF {
			return b.String()
		}
		if err != nil {
			return "not JSON: " + s
		}
		if n, ok := t.(json.Number); ok {
			if f, err := n.Float64(); err == nil && strings.ContainsAny(n.String(), ".eE") {
				fmt.Fprintf(&b, "float %v ", f)
				continue
			}
		}
		fmt.Fprintf(&b, "%T %v ", t, t)
	}
}

// difference is a value on which the two decoders disagree.
type difference struct {
	c            *batch.Column
	have, expect string
	v            any    // as go-mysql gives it
	before       string // own value of the before image, of updates
}

// differences lists where the decoders may disagree, with the reason. Each entry
// still checks as much as it can.
var differences = []struct {
	reason string
	is     func(d *difference) bool
}{
	{"BINARY columns lose their trailing zeros in the log, and go-mysql does not put them back", func(d *difference) bool {
		return d.c.Type == batch.Bytes && strings.HasPrefix(d.c.Native, "binary") && len(d.have) == int(d.c.Length) && strings.TrimRight(d.have, "\x00") == strings.TrimRight(d.expect, "\x00")
	}},
	{"MariaDB stores the parts of a UUID in another order, and trailing zeros are lost; go-mysql gives the stored bytes", func(d *difference) bool {
		sum := func(s string) (n int) {
			for i := range len(s) {
				n += int(s[i])
			}
			return n
		}
		return d.c.Type == batch.UUID && len(d.have) == 16 && sum(d.have) == sum(d.expect)
	}},
	{"INET4 and INET6 are bytes without trailing zeros to go-mysql, addresses to us", func(d *difference) bool {
		ip, err := netip.ParseAddr(d.have)
		size := map[string]int{"inet4": 4, "inet6": 16}[d.c.Native]
		return d.c.Type == batch.Inet && err == nil && string(ip.AsSlice()) == (d.expect + strings.Repeat("\x00", 16))[:size]
	}},
	{"go-mysql reads a negative TIME of the old format as an unsigned number", func(d *difference) bool {
		var h, m, s, h2, m2, s2 int
		_, err1 := fmt.Sscanf(d.have, "-%d:%d:%d", &h, &m, &s)
		_, err2 := fmt.Sscanf(d.expect, "%d:%d:%d", &h2, &m2, &s2)
		return d.c.Native == "time" && err1 == nil && err2 == nil && (h*10000+m*100+s)+(h2*10000+m2*100+s2) == 1<<24
	}},
	{"go-mysql drops a fraction of zeros from TIME; the server prints it", func(d *difference) bool {
		return d.c.Type == batch.Time && d.have == d.expect+"."+strings.Repeat("0", int(d.c.Scale))
	}},
	{"a JSON document without bytes is the null literal to the server, nothing to go-mysql", func(d *difference) bool {
		b, ok := d.v.([]byte)
		return d.c.Type == batch.JSON && ok && len(b) == 0 && d.have == canonicalJSON("null")
	}},
	{"go-mysql gives the differences of a partial update; we apply them", func(d *difference) bool {
		_, ok := d.v.(*replication.JsonDiff)
		return ok && d.have != d.before
	}},
	{"a partial update with no difference leaves the document as it was; go-mysql gives nothing", func(d *difference) bool {
		b, ok := d.v.([]byte)
		return ok && len(b) == 0 && d.have == d.before
	}},
}

func (d *difference) known() bool {
	for i := range differences {
		if differences[i].is(d) {
			return true
		}
	}
	return false
}
