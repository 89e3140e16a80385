package writer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/plugins/hbase/internal/rowkey"
	"github.com/datalink-go/datalink/plugins/hbase/internal/value"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// plan says where the columns of a schema go.
type plan struct {
	schema   *batch.Schema
	table    string
	key      *rowkey.Template
	columns  []column
	families []string // those of the columns, the main one first
	marker   []byte   // qualifier of the cell that shows that the row is there; nil = key columns do
	encoding value.Encoding
	loose    bool // keys that differ in bytes may be one row: 1.0 and 1.00
}

type column struct {
	family, qualifier []byte
	key, skip         bool // skip: it lies in the row key alone
}

// markerQualifier is the cell that a row has where its key columns have none; it is
// the one that Phoenix uses.
const markerQualifier = "_0"

var tableName = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_]*:)?[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

func newPlan(cfg *Config, s *batch.Schema) (*plan, error) {
	if len(s.Key) == 0 {
		return nil, sdk.Faultf(sdk.CodeRefused, "table %s has no key: its rows have no place in HBase that a repeated write would find again", s.Name()).
			Suggest("give the table a primary key, or leave it out of the task")
	}
	rule := cfg.Tables[s.Name()]
	p := &plan{schema: s, table: rule.Table, encoding: value.Encoding(or(rule.Encoding, cfg.Encoding))}
	if p.table == "" {
		p.table = s.Table
		if s.Namespace != "" {
			p.table = s.Namespace + ":" + s.Table
		}
	}
	if !tableName.MatchString(p.table) {
		return nil, sdk.Faultf(sdk.CodeSchemaMismatch, "table %s cannot be called %q in HBase: letters, digits, _, - and . are possible, the last two not at the beginning", s.Name(), p.table).
			Suggest("name it in tables.%s.table", s.Name())
	}
	var err error
	if p.key, err = rowkey.Parse(or(rule.RowKey, rowkey.Default(s)), s); err != nil {
		return nil, sdk.Faultf(sdk.CodeInvalidConfig, "%v", err).Suggest("see tables.%s.rowKey", s.Name())
	}
	family := or(rule.Family, cfg.Family)
	p.families = []string{family}
	taken := map[string]string{}
	for i := range s.Columns {
		c := &s.Columns[i]
		f, q := family, c.Name
		if at := rule.Columns[c.Name]; at != "" {
			f, q, _ = strings.Cut(at, ":")
		}
		if c.Type == batch.Decimal && slices.Contains(s.Key, i) {
			p.loose = true
		}
		col := column{family: []byte(f), qualifier: []byte(q), key: slices.Contains(s.Key, i)}
		col.skip = col.key && cfg.KeyCells == KeyMarker
		p.columns = append(p.columns, col)
		if col.skip {
			continue
		}
		if err := value.Fits(p.encoding, c); err != nil {
			return nil, sdk.Faultf(sdk.CodeSchemaMismatch, "table %s: %v", s.Name(), err).Suggest("use encoding: text, or leave the column out")
		}
		if other, ok := taken[f+":"+q]; ok {
			return nil, sdk.Faultf(sdk.CodeInvalidConfig, "table %s: columns %s and %s both go to %s:%s", s.Name(), other, c.Name, f, q)
		}
		taken[f+":"+q] = c.Name
		if !slices.Contains(p.families, f) {
			p.families = append(p.families, f)
		}
	}
	if cfg.KeyCells == KeyMarker {
		p.marker = []byte(markerQualifier)
		if c, ok := taken[family+":"+markerQualifier]; ok {
			return nil, sdk.Faultf(sdk.CodeInvalidConfig, "table %s: column %s goes to %s:%s, which marks that a row is there", s.Name(), c, family, markerQualifier)
		}
	}
	used := false
	for _, c := range p.columns {
		used = used || !c.skip && string(c.family) == family
	}
	if !used && p.marker == nil {
		p.families = p.families[1:]
	}
	for name := range rule.Columns {
		if s.Column(name) < 0 {
			cfg.Log.Warn("the configuration names a column that the table has not", "table", s.Name(), "column", name)
		}
	}
	return p, nil
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// splits returns where a new table is split: one region a salt, or n of equal
// share of the first byte where a hash comes first.
func (p *plan) splits(n int) (out [][]byte) {
	if s := p.key.Salts(); s > 0 {
		for i := 1; i < s; i++ {
			out = append(out, []byte{byte(i)})
		}
		return out
	}
	for i := 1; i < min(n, 256); i++ {
		out = append(out, []byte{byte(i * 256 / min(n, 256))})
	}
	return out
}

func (p *plan) String() string { return fmt.Sprintf("%s → %s", p.schema.Name(), p.table) }
