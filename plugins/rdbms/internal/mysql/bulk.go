package mysql

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/target"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Limits of LOAD DATA LOCAL: below so many rows an INSERT is as fast, and so many
// bytes are kept in memory.
const (
	bulkRows  = 1000
	bulkBytes = 4 << 20
	// A table whose rows were there so often already is written by INSERT.
	bulkMisses = 2
)

// readers counts the names under which the driver, process-wide, finds what it is
// to send.
var readers atomic.Uint64

// bulk reports whether rows of a snapshot go by LOAD DATA LOCAL.
func (a *applier) bulk(p *plan, rows int) bool {
	a.w.mu.Lock()
	local := a.w.srv != nil && a.w.srv.local
	a.w.mu.Unlock()
	return local && a.w.cfg.Bulk == target.Auto && rows >= bulkRows && p.loadable && a.misses[p] < bulkMisses
}

// loadable reports whether the columns take what LOAD DATA reads as bytes: text
// of another charset would have to be converted, and some types take no bytes.
func loadable(columns []column) bool {
	for i := range columns {
		c := &columns[i]
		switch {
		case c.name == "":
			return false
		case c.to.base == "bit", c.to.base == "json", c.to.base == "vector", c.to.base == "geometry", c.to.base == "uuid":
			return false
		case c.source.Type == batch.Bit, c.source.Type == batch.UUID, c.source.Type == batch.Geometry:
			return false
		case c.have.Charset != "" && !strings.HasPrefix(c.have.Charset, "utf8"):
			return false
		}
	}
	return true
}

// load writes rows by LOAD DATA LOCAL. The server makes warnings of what is wrong
// there and passes rows over whose keys it has: with any of that the rows are
// taken back, and the caller writes them by INSERT.
func (a *applier) load(p *plan, seg []sdk.Change, at []int32) (bool, error) {
	if err := a.s.exec(a.ctx, "SAVEPOINT datalink"); err != nil {
		return false, err
	}
	for from := 0; from < len(at); {
		n, ok, err := a.tabbed(p, seg, at[from:])
		if err != nil {
			return false, err
		}
		if ok {
			if ok, err = a.loadText(p, n); err != nil {
				return false, err
			}
		}
		if !ok {
			if a.misses == nil {
				a.misses = map[*plan]int{}
			}
			a.misses[p]++
			return false, a.s.exec(a.ctx, "ROLLBACK TO SAVEPOINT datalink")
		}
		from += n
	}
	return true, a.s.exec(a.ctx, "RELEASE SAVEPOINT datalink")
}

// tabbed writes rows as LOAD DATA reads them and returns how many. It is not ok
// where a row has to go another way.
func (a *applier) tabbed(p *plan, seg []sdk.Change, at []int32) (n int, ok bool, err error) {
	a.text = a.text[:0]
	for n < len(at) && len(a.text) < bulkBytes {
		c := &seg[at[n]]
		if !c.After.Complete() {
			return n, false, nil
		}
		vals, err := c.After.Values(a.after)
		if err != nil {
			return n, false, err
		}
		a.after = vals
		for i := range vals {
			from := len(a.text)
			if a.text, err = a.appendValue(a.text, p, i, &vals[i]); err != nil {
				return n, false, nil // INSERT says which record it is
			}
			a.text = unquoted(a.text, from)
			a.text = append(a.text, '\t')
		}
		a.text[len(a.text)-1] = '\n'
		n++
	}
	return n, true, nil
}

// unquoted makes a field of LOAD DATA of the literal that begins at from: the same
// escapes without quotes.
func unquoted(b []byte, from int) []byte {
	lit := b[from:]
	if bytes.Equal(lit, []byte("NULL")) {
		return append(b[:from], `\N`...)
	}
	lit = bytes.TrimPrefix(lit, []byte("_binary"))
	if len(lit) > 1 && lit[0] == '\'' {
		lit = lit[1 : len(lit)-1]
	}
	return b[:from+copy(b[from:], lit)]
}

// loadText sends what stands in text, and reports whether all of it was taken as
// it is.
func (a *applier) loadText(p *plan, rows int) (bool, error) {
	name := fmt.Sprintf("datalink%d", readers.Add(1))
	mysql.RegisterReaderHandler(name, func() io.Reader { return bytes.NewReader(a.text) })
	defer mysql.DeregisterReaderHandler(name)
	var cols []string
	for i := range p.columns {
		cols = append(cols, p.columns[i].name)
	}
	a.w.cfg.Stats.Statements.Add(1)
	n, err := a.s.matched(a.ctx, "LOAD DATA LOCAL INFILE 'Reader::"+name+"' INTO TABLE "+p.table+
		` CHARACTER SET binary FIELDS TERMINATED BY '\t' ESCAPED BY '\\' LINES TERMINATED BY '\n' (`+strings.Join(cols, ",")+")")
	if err != nil {
		if recordFault("", err) != nil && !lost(err) {
			return false, nil
		}
		return false, err
	}
	warnings, err := a.s.query(a.ctx, "SELECT @@warning_count")
	if err != nil {
		return false, err
	}
	return n == int64(rows) && warnings[0][0].number() == 0, nil
}
