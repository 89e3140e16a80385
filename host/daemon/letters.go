package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/api"
)

// DeadLetters implements api.Backend.
func (n *Node) DeadLetters(ctx context.Context, name string) ([]api.DeadLetter, error) {
	d, err := n.store.Task(ctx, name)
	if errors.Is(err, coordination.ErrNotFound) {
		return nil, n.noTask(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	writers, err := n.store.Writers(ctx, d.UID)
	if err != nil {
		return nil, err
	}
	out := []api.DeadLetter{}
	for _, w := range writers {
		p, err := n.store.Progress(ctx, d.UID, w)
		if err != nil {
			return nil, err
		}
		for i := range p.DeadLetters {
			l, _ := showLetter(w, &p.DeadLetters[i])
			l.Before, l.After = nil, nil
			out = append(out, *l)
		}
	}
	return out, nil
}

// DeadLetter implements api.Backend.
func (n *Node) DeadLetter(ctx context.Context, name, writer string, number uint64) (*api.DeadLetter, error) {
	d, err := n.store.Task(ctx, name)
	if errors.Is(err, coordination.ErrNotFound) {
		return nil, n.noTask(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	writer, err = n.oneWriter(ctx, d, writer)
	if err != nil {
		return nil, err
	}
	p, err := n.store.Progress(ctx, d.UID, writer)
	if err != nil {
		return nil, err
	}
	for i := range p.DeadLetters {
		if p.DeadLetters[i].Number == number {
			return showLetter(writer, &p.DeadLetters[i])
		}
	}
	return nil, api.Errorf(api.Usage, "writer %s of task %s has no dead letter %d, it has %s", writer, name, number, numbersOf(p.DeadLetters))
}

func numbersOf(all []coordination.DeadLetter) string {
	if len(all) == 0 {
		return "none"
	}
	var out []uint64
	for _, d := range all {
		out = append(out, d.Number)
	}
	return fmt.Sprint(out)
}

// oneWriter returns the writer that is meant where none was named.
func (n *Node) oneWriter(ctx context.Context, d coordination.Definition, writer string) (string, error) {
	_, t, err := n.stored(ctx, d.Name)
	if err != nil {
		return "", err
	}
	var names []string
	for _, w := range t.Writers {
		names = append(names, w.Name)
	}
	switch {
	case writer == "" && len(names) == 1:
		return names[0], nil
	case slices.Contains(names, writer):
		return writer, nil
	}
	return "", api.Errorf(api.Usage, "--writer: found %q, expected one of %q", writer, names)
}
