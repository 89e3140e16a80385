package mapping

import (
	"errors"
	"fmt"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// row appends what a row becomes under one plan.
func (s *Stage) row(p *plan, e *batch.Event) error {
	kind, err := s.filter(p, e)
	if err != nil || kind == batch.KindInvalid {
		return err
	}
	if p.routes == nil {
		return s.emit(p, p.out, e, kind)
	}
	var to [2]*batch.Schema
	for side, im := range []batch.Image{e.Before, e.After} {
		if im.IsZero() || side == 1 && kind == batch.Delete || side == 0 && kind == batch.Insert {
			continue
		}
		if to[side], err = s.route(p, im, side); err != nil {
			return err
		}
	}
	switch {
	case kind != batch.Update:
		if to[1] == nil {
			to[1] = to[0]
		}
	case to[0] == nil:
		return sdk.Faultf(sdk.CodeRefused, "the name of a row's target table depends on the row, and an update of %s has no image of the row before it", p.in.Name()).
			Suggest("set the source's row image to full")
	case to[0] != to[1]: // the row moves to another table
		if err := s.emit(p, to[0], e, batch.Delete); err != nil {
			return err
		}
		return s.emit(p, to[1], e, batch.Insert)
	}
	return s.emit(p, to[1], e, kind)
}

// route returns the layout of the table to which an image's values lead.
func (s *Stage) route(p *plan, im batch.Image, side int) (*batch.Schema, error) {
	v, err := im.Values(s.vals[side])
	if err != nil {
		return nil, err
	}
	s.vals[side] = v
	ns, table, err := p.rule.target(p.in, s.naming, func(pt *part) (string, error) {
		i := p.in.Column(pt.column)
		return pt.show(p.in, &p.in.Columns[i], &v[i])
	})
	if err != nil {
		return nil, err
	}
	name := ns + "\x00" + table
	out := p.routes[name]
	if out == nil {
		out = p.out.Clone()
		out.Namespace, out.Table = ns, table
		if out.ID, err = s.id(); err != nil {
			return nil, err
		}
		p.routes[name] = out
	}
	return out, nil
}

// emit appends the row as kind, with the images the kind has.
func (s *Stage) emit(p *plan, schema *batch.Schema, e *batch.Event, kind batch.Kind) error {
	if p.whole && kind == e.Kind && schema.ID == p.in.ID {
		c := *e
		c.Schema = schema
		return s.out.CopyEvent(&c)
	}
	out := s.out
	out.SetOrdinal(e.Ordinal)
	if err := out.BeginRow(kind, schema); err != nil {
		return err
	}
	for side, im := range []batch.Image{e.Before, e.After} {
		if im.IsZero() || side == 1 && kind == batch.Delete || side == 0 && kind == batch.Insert {
			continue
		}
		v, err := im.Values(s.vals[side])
		if err != nil {
			out.DropRow()
			return err
		}
		s.vals[side] = v
		out.BeginImage(batch.Side(side))
		if err := s.image(p, kind, v); err != nil {
			out.DropRow()
			return err
		}
		out.EndImage()
	}
	if err := out.EndRow(); err != nil {
		return fmt.Errorf("map a row of %s: %w", p.in.Name(), err)
	}
	return nil
}

func (s *Stage) image(p *plan, kind batch.Kind, v []batch.Value) error {
	for _, a := range p.first {
		if err := a.put(s.out, p.texts[a]); err != nil {
			return err
		}
	}
	for _, i := range p.keep {
		if kind == batch.Insert && v[i].State == batch.Unchanged {
			return sdk.Faultf(sdk.CodeRefused, "an update of %s makes a new row for the target, and column %s is not in the source's log", p.in.Name(), p.in.Columns[i].Name).
				Suggest("set the source's row image to full")
		}
		s.out.PutValue(&v[i])
	}
	for _, a := range p.last {
		if err := s.added(p, a, v); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stage) added(p *plan, a *added, v []batch.Value) error {
	if a.value != nil {
		return a.put(s.out, p.texts[a])
	}
	val, err := s.eval(fmt.Sprintf("column %s, expr %q,", a.name, a.Expr), a.program, p.in, p.reads[a], v)
	var m errMissing
	switch {
	case errors.As(err, &m) && m.state == batch.Unchanged:
		s.out.PutUnchanged()
		return nil
	case errors.As(err, &m):
		s.out.PutAbsent()
		return nil
	case err != nil:
		return err
	}
	return a.put(s.out, val)
}
