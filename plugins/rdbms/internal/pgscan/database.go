package pgscan

import (
	"context"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/plugins/rdbms/internal/pgcat"
	"github.com/datalink-go/datalink/plugins/rdbms/internal/scan"
	"github.com/datalink-go/datalink/sdk"
)

var _ scan.Database = (*Database)(nil)

// Database is a database that is copied as it is at one moment.
type Database struct {
	// Apart gives each session a moment of its own.
	Apart bool

	srv *pgcat.Server
	sel scan.Selection
	src *Source
}

// NewDatabase returns the database that the url names.
func NewDatabase(url string, sel scan.Selection) (*Database, error) {
	srv, err := pgcat.Parse(url)
	if err != nil {
		return nil, err
	}
	return &Database{srv: srv, sel: sel}, nil
}

// Begin takes a new snapshot.
func (d *Database) Begin(ctx context.Context) error {
	if d.Apart {
		return nil
	}
	d.Close()
	src, _, err := Begin(ctx, d.srv, nil, nil)
	d.src = src
	return err
}

// Open implements scan.Source.
func (d *Database) Open(ctx context.Context) (scan.Session, error) {
	if d.Apart {
		return New(d.srv, "").Open(ctx)
	}
	if d.src == nil {
		if err := d.Begin(ctx); err != nil {
			return nil, err
		}
	}
	return d.src.Open(ctx)
}

// Tables implements scan.Database.
func (d *Database) Tables(ctx context.Context) ([]*scan.Table, error) {
	c, err := d.srv.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer pgcat.Close(c)
	tables, err := pgcat.NewCatalog().List(ctx, c, d.sel.Filter.Wants)
	if err != nil {
		return nil, d.srv.Fault("list the tables of "+d.srv.Name(), err)
	}
	slices.SortFunc(tables, func(a, b *pgcat.Table) int { return strings.Compare(a.Full(), b.Full()) })
	var out []*scan.Table
	for i, t := range tables {
		st, err := d.sel.Apply(TableOf(t, t.Schema(uint32(i+1), 1, d.srv.Name()), ""))
		if err != nil {
			return nil, err
		}
		out = append(out, st)
	}
	return out, d.sel.Unmatched()
}

// Check implements scan.Database.
func (d *Database) Check(ctx context.Context) ([]sdk.Finding, error) {
	tables, err := d.Tables(ctx)
	if err != nil {
		f := sdk.AsFault(err)
		return []sdk.Finding{{Severity: sdk.Error, Subject: d.srv.Name(), Message: f.Message, Advice: f.Suggestion}}, nil
	}
	return scan.CheckTables(tables), nil
}

// Close lets the snapshot go.
func (d *Database) Close() {
	if d.src != nil {
		d.src.Close()
		d.src = nil
	}
}
