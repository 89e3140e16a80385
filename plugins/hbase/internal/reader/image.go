package reader

import (
	"slices"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rpc"
	"github.com/datalink-go/datalink/plugins/hbase/internal/value"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// put appends a row as it is, or, without cells, that it is gone. Part says that
// cells are not all of the row: columns without one are unchanged. A row key that is
// none of the template stops the reader: where the row belongs is not known.
func (s *source) put(out *batch.Builder, kind batch.Kind, row []byte, cells []rpc.Cell, part bool) error {
	parts, err := s.key.Decode(row)
	if err != nil {
		return sdk.Faultf(sdk.CodeCorruptSource, "table %s: %v", s.name, err).Suggest("correct tables.%s.rowKey, or take the row away", s.name)
	}
	side := batch.AfterImage
	if len(cells) == 0 {
		kind, side = batch.Delete, batch.BeforeImage
	}
	if err := out.BeginRow(kind, s.schema); err != nil {
		return err
	}
	out.BeginImage(side)
	for i := range s.schema.Columns {
		c := &s.schema.Columns[i]
		if i < len(s.schema.Key) {
			for k := range parts {
				if p := &parts[k]; p.Column == i {
					if !p.Put(out, c) {
						out.DropRow()
						return sdk.Faultf(sdk.CodeCorruptSource, "table %s, row %q: column %s is no %s", s.name, row, c.Name, c.Type)
					}
				}
			}
			continue
		}
		at := slices.IndexFunc(cells, func(x rpc.Cell) bool {
			return string(x.Qualifier) == string(s.cells[i].qualifier) && string(x.Family) == string(s.cells[i].family)
		})
		switch {
		case len(cells) == 0:
			out.PutAbsent()
		case at < 0 && part:
			out.PutUnchanged()
		case at < 0:
			out.PutNull()
		default:
			value.Put(out, s.encoding, c, cells[at].Value)
		}
	}
	out.EndImage()
	return out.EndRow()
}
