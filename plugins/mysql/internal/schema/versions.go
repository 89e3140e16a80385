package schema

import "errors"

// Place is an offset in a file of the log.
type Place struct {
	File   uint64
	Offset int64
}

func (p Place) after(q Place) bool {
	return p.File > q.File || p.File == q.File && p.Offset > q.Offset
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

// Versions returns the kept layouts of a table and the number of its last change.
func (h *History) Versions(n Name) ([]Version, uint64) {
	if e := h.tables[n]; e != nil {
		return e.versions, e.version
	}
	return nil, 0
}

// Restore puts back what Versions gave, up to a place: layouts from after it are
// forgotten, as the statements that made them will be read again.
func (h *History) Restore(n Name, versions []Version, number uint64, at Place) {
	i := len(versions)
	for i > 0 && versions[i-1].At.after(at) {
		i--
	}
	e := &entry{version: number - uint64(len(versions)-i)}
	switch {
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
