package binlogtest

import (
	"encoding/binary"
	"io"

	"github.com/datalink-go/datalink/plugins/mysql/internal/binlog"
)

// Wide is a table of twenty columns of many types, whose rows take about 310
// bytes in the log.
func Wide() *Table {
	str := func(name string, n byte) Column {
		return Column{Name: name, Type: 15, Meta: []byte{n, 0}, Collation: 45}
	}
	return &Table{
		ID: 100, Database: "bench", Name: "wide", Key: []byte{0},
		Columns: []Column{
			{Name: "id", Type: 8, Unsigned: true},
			{Name: "customer", Type: 3},
			{Name: "flags", Type: 3, Unsigned: true},
			{Name: "kind", Type: 1},
			{Name: "quantity", Type: 2},
			{Name: "price", Type: 246, Meta: []byte{12, 2}},
			{Name: "tax", Type: 246, Meta: []byte{8, 4}},
			{Name: "score", Type: 5, Meta: []byte{8}},
			{Name: "created", Type: 18, Meta: []byte{6}},
			{Name: "changed", Type: 17, Meta: []byte{0}},
			{Name: "day", Type: 10},
			{Name: "at", Type: 19, Meta: []byte{3}},
			str("name", 160), str("street", 200), str("city", 160), str("country", 80), str("mail", 200), str("phone", 80),
			{Name: "note", Type: 252, Meta: []byte{2}, Collation: 45},
			{Name: "digest", Type: 252, Meta: []byte{1}, Collation: 63},
		},
	}
}

const letters = "the quick brown fox jumps over the lazy dog and runs along the river until the evening comes and the light fades"

// AppendWideRow appends row n of Wide.
func AppendWideRow(b []byte, n uint64) []byte {
	b = append(b, 0, 0, 0) // no NULLs
	b = binary.LittleEndian.AppendUint64(b, n)
	b = binary.LittleEndian.AppendUint32(b, uint32(n*7))
	b = binary.LittleEndian.AppendUint32(b, uint32(n*2654435761))
	b = append(b, byte(n), byte(n), byte(n>>8))
	b = append(b, 0x80, byte(n>>16&0x0F), byte(n>>8), byte(n), 0x01, byte(n%100)) // decimal(12,2)
	b = append(b, 0x80, byte(n%99), 0x10, byte(n))                                // decimal(8,4)
	b = binary.LittleEndian.AppendUint64(b, 0x3FF0000000000000|n<<20)
	dt := uint64(2024*13+3)<<22 | uint64(1+n%28)<<17 | uint64(n%24)<<12 | uint64(n%60)<<6 | uint64(n*7%60) + 1<<39
	b = append(b, byte(dt>>32), byte(dt>>24), byte(dt>>16), byte(dt>>8), byte(dt), byte(n>>16&7), byte(n>>8), byte(n))
	b = binary.BigEndian.AppendUint32(b, uint32(1_700_000_000+n))
	d := 2024<<9 | 5<<5 | uint32(1+n%28)
	b = append(b, byte(d), byte(d>>8), byte(d>>16))
	b = append(b, 0x80, byte(n%24<<4), byte(n%60), byte(n>>8&3), byte(n))
	for i, size := range [...]int{22, 28, 18, 12, 30, 16} {
		b = append(b, byte(size))
		at := (int(n) + 7*i) % (len(letters) - size)
		b = append(b, letters[at:at+size]...)
	}
	const note = 80
	at := int(n) % (len(letters) - note)
	b = append(append(b, note, 0), letters[at:at+note]...)
	b = append(b, 20)
	for i := range 20 {
		b = append(b, byte(n)+byte(i))
	}
	return b
}

// WideFile writes a file of so many transactions of so many rows each of Wide,
// one row event a statement of perEvent rows.
func WideFile(w io.Writer, transactions, rows, perEvent int, o Options) error {
	bw := New(w, o)
	t := Wide()
	n := uint64(0)
	var buf []byte
	for i := range transactions {
		bw.GTID(uint64(i + 1))
		bw.Begin()
		for done := 0; done < rows; {
			bw.Map(t)
			buf = buf[:0]
			for k := 0; k < perEvent && done < rows; k++ {
				n++
				done++
				buf = AppendWideRow(buf, n)
			}
			bw.Rows(binlog.WriteRowsV2, t, buf)
		}
		bw.Commit(uint64(i + 1))
	}
	return bw.Err()
}
