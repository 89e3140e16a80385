package rpc

import "testing"

// FuzzDecoders feeds foreign bytes to everything that reads them.
func FuzzDecoders(f *testing.F) {
	cell := AppendCell(nil, []byte("row"), []byte("f"), []byte("q"), 7, TypePut, []byte("value"))
	f.Add(cell)
	f.Add([]byte(message(nil).bytes(1, message(nil).bytes(1, message(nil).varint(1, 0).bytes(3, appendPair([]byte("java.io.IOException"), []byte("x")))))))
	f.Add([]byte(message(nil).varint(1, 3).varint(2, 9).bool(3, true).varint(8, 1)))
	f.Add([]byte(message(nil).bytes(1, message(nil).bytes(1, message(nil).string(1, "r").string(2, "t").varint(3, 5)).varint(3, 1))))
	f.Add([]byte("\xff\x00\x00\x00\x02abPBUF\x0a\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = Cells(data, false)
		_, _ = Cells(data, true)
		_, _, _ = parseReply(data, "a")
		var s scanReply
		_ = s.parse(reply{msg: data, cells: cell})
		_ = s.parse(reply{msg: cell, cells: data})
		_, _, _ = parseResult(data, data)
		_, _, _, _, _ = parseCall(data)
		_, _ = ParseEntries(data, cell, true)
		_, _ = znode(data)
		_, _ = parseTable(data)
		_, _ = parseServerName(data)
		_, _ = parseRegion([]Cell{{Row: []byte("t,,1.a."), Family: []byte("info"), Qualifier: []byte("regioninfo"), Value: data}})
		p := part{region: &Region{}, muts: []int{0, 1}}
		_ = (&multiRequest{parts: []part{p}}).results(reply{msg: data}, make([]error, 2), func([]int, error) {}, func(*Region) {})
	})
}
