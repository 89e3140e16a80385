package schema

import "errors"

// Place is where in a log a statement stands: an offset in a file, and the id of
// its transaction where the log has GTIDs, which holds on every server that has
// the transaction. Base is the printable position at which a layout was read
// from the server itself; such a place has nothing else.
type Place struct {
	File   uint64 `json:",omitempty"`
	Offset int64  `json:",omitempty"`
	GTID   string `json:",omitempty"`
	Base   string `json:",omitempty"`
}

// Covered says whether a place is at or before the one where reading begins.
type Covered func(Place) bool

// Before is Covered for offsets in the files of one log.
func Before(file uint64, offset int64) Covered {
	return func(p Place) bool { return p.File < file || p.File == file && p.Offset <= offset }
}

// Version is a layout of a table and the place from which on it holds. Neither
// Table nor Unknown: the table was dropped there.
type Version struct {
	Name    Name
	At      Place
	Table   *Table `json:",omitempty"`
	Unknown string `json:",omitempty"`
}

// kept is how many layouts of a table are kept, so that reading can begin
// somewhat before the last one.
const kept = 16

func (e *entry) note(n Name, at Place) {
	v := Version{Name: n, At: at, Table: e.table}
	if e.unknown != nil {
		v.Unknown = e.unknown.Error()
	}
	if k := len(e.versions); k > 0 && e.versions[k-1].At == at {
		e.versions[k-1] = v
		return
	}
	e.versions = append(e.versions, v)
	if len(e.versions) > kept {
		e.versions = append([]Version(nil), e.versions[1:]...)
	}
}

func (e *entry) get() (*Table, error) {
	if e == nil {
		return nil, nil
	}
	return e.table, e.unknown
}

// SetPlace says where the statements that follow stand in the log.
func (h *History) SetPlace(p Place) { h.place = p }

// Place is what SetPlace was given last.
func (h *History) Place() Place { return h.place }

// Versions returns the kept layouts of a table and the number of its last change.
func (h *History) Versions(n Name) ([]Version, uint64) {
	if e := h.tables[n]; e != nil {
		return e.versions, e.version
	}
	return nil, 0
}

// Restore puts back what Versions gave, up to where reading begins: layouts from
// after it are forgotten, as the statements that made them will be read again.
// After a failover transactions may come in another order; a layout that is
// covered and follows one that is not cannot be put in its place, and the table
// becomes unknown.
func (h *History) Restore(n Name, versions []Version, number uint64, covered Covered) {
	i := 0
	for i < len(versions) && covered(versions[i].At) {
		i++
	}
	torn := false
	for k := i; k < len(versions); k++ {
		torn = torn || covered(versions[k].At)
	}
	e := &entry{version: number - uint64(len(versions)-i)}
	switch {
	case torn:
		e.unknown = errors.New("its layouts were changed by two servers in different orders")
		e.version = number
	case i > 0:
		last := &versions[i-1]
		e.table = last.Table
		if last.Unknown != "" {
			e.unknown = errors.New(last.Unknown)
		}
		e.versions = versions[:i:i]
	case len(versions) == kept:
		e.unknown = errors.New("the kept layouts of the table do not reach back so far")
	default:
		return // it did not exist yet
	}
	h.gen++
	h.tables[n] = e
}

// Adopt takes a layout that the server itself gave at a place.
func (h *History) Adopt(t *Table, at Place) {
	place := h.place
	h.place = at
	h.put(Name{t.Database, t.Name}, t, nil)
	h.place = place
}

// Doubt makes a table unknown for a reason, from the present place on.
func (h *History) Doubt(n Name, reason error) { h.put(n, nil, reason) }

// Default is the default character set of a database.
type Default struct{ Charset, Collation string }

// Database returns the default character set of a database.
func (h *History) Database(name string) Default {
	d := h.databases[name]
	return Default{d.charset, d.collation}
}

// RestoreDatabase puts back what Database gave.
func (h *History) RestoreDatabase(name string, d Default) {
	h.databases[name] = collations{d.Charset, d.Collation}
}
