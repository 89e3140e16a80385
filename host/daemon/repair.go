package daemon

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wire"
)

// Drop implements api.Backend.
func (n *Node) Drop(ctx context.Context, name, writer string, numbers []uint64) ([]api.Outcome, error) {
	return n.letters(ctx, name, writer, numbers, func(ctx context.Context, cfg *pipeline.Config, w *pipeline.WriterConfig, held []sdk.DeadLetter, number uint64) (string, error) {
		if !slices.ContainsFunc(held, func(d sdk.DeadLetter) bool { return d.Number == number }) {
			return noLetter, nil
		}
		return "", n.forgetLetters(ctx, cfg, w, []uint64{number})
	})
}

// Retry implements api.Backend. It writes the changes of the letter's key again,
// in their order. Since later changes of a key follow a dead letter of it, the
// newest letter is the newest change there is; an older one is not written again.
func (n *Node) Retry(ctx context.Context, name, writer string, numbers []uint64) ([]api.Outcome, error) {
	return n.letters(ctx, name, writer, numbers, func(ctx context.Context, cfg *pipeline.Config, w *pipeline.WriterConfig, held []sdk.DeadLetter, number uint64) (string, error) {
		var chosen *sdk.DeadLetter
		for i := range held {
			if held[i].Number == number {
				chosen = &held[i]
			}
		}
		if chosen == nil {
			return noLetter, nil
		}
		if len(chosen.Key) == 0 {
			return fmt.Sprintf("table %s has no key: whether the row was written cannot be told; write it by hand and drop the letter", chosen.Table), nil
		}
		var same []sdk.DeadLetter
		var done []uint64
		for _, d := range held {
			if d.Table != chosen.Table || !bytes.Equal(d.Key, chosen.Key) {
				continue
			}
			if d.Number > number {
				return fmt.Sprintf("dead letter %d is a newer change of the same key: retry that one, which writes this one before it", d.Number), nil
			}
			same, done = append(same, d), append(done, d.Number)
		}
		reqs, err := repair(ctx, cfg, w, same)
		if err != nil {
			return "", err
		}
		// First the rows, then the letters: a crash between the two leaves letters
		// whose repetition changes nothing.
		if err := send(ctx, cfg, w, reqs...); err != nil {
			f := sdk.AsFault(err)
			if f.Code == sdk.CodeFenced || f.Code == sdk.CodeTargetWentBack || errors.Is(err, pipeline.ErrDied) {
				return "", err
			}
			return "it was refused again: " + f.Error(), nil
		}
		return "", n.forgetLetters(ctx, cfg, w, done)
	})
}

func ceilingOf(w *pipeline.WriterConfig) uint64 {
	if w.Claimed == nil {
		return 0
	}
	return w.Claimed.Ceiling
}

// repair makes a request of each letter, in the order of their numbers. Its
// transaction ends where the target is: progress stays as it is.
func repair(ctx context.Context, cfg *pipeline.Config, w *pipeline.WriterConfig, letters []sdk.DeadLetter) ([]*wire.WriteRequest, error) {
	at, err := commonPoint(w)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(letters, func(a, b sdk.DeadLetter) int { return cmp.Compare(a.Number, b.Number) })
	var out []*wire.WriteRequest
	for i := range letters {
		block, err := recordAt(letters[i].Record, at)
		if err != nil {
			return nil, fmt.Errorf("record of dead letter %d: %w", letters[i].Number, err)
		}
		out = append(out, &wire.WriteRequest{Block: block, First: at, Last: at, Lanes: lanes(w)})
	}
	if !w.Versioned {
		return out, nil
	}
	base := ceilingOf(w) + 1
	ceiling, err := cfg.Progress.Reserve(ctx, w.Name, base+uint64(len(out)))
	if err != nil {
		return nil, err
	}
	for i, q := range out {
		q.VersionBase, q.Ceiling = base+uint64(i), ceiling
	}
	return out, nil
}

// commonPoint returns the position at which all lanes of a target stand, and
// refuses where they do not: a repair could then move one of them.
func commonPoint(w *pipeline.WriterConfig) (sdk.Position, error) {
	var at sdk.Position
	found := false
	if w.Claimed != nil {
		for _, p := range w.Claimed.Points {
			switch {
			case p.Lane == sdk.WriterLane:
			case p.Position.IsZero() || p.Position.Ordinal != 0:
				return at, sdk.Faultf(sdk.CodeRefused, "lane %d of the target is not between two transactions of the source", p.Lane).
					Suggest("run the task until it has caught up, then repeat the command")
			case found && !bytes.Equal(at.Source, p.Position.Source):
				return at, sdk.Faultf(sdk.CodeRefused, "the target's lanes are at different positions").
					Suggest("run the task until it has caught up, then repeat the command")
			default:
				at, found = p.Position, true
			}
		}
	}
	if !found && w.Stores {
		return at, sdk.Faultf(sdk.CodeRefused, "the target holds no progress").Suggest("run the task once")
	}
	return at, nil
}

// recordAt makes the block of a record anew, with a transaction that begins and
// ends at a position.
func recordAt(record []byte, at sdk.Position) ([]byte, error) {
	var b batch.Block
	if err := b.Decode(record, batch.NewRegistry(), batch.Limits{}); err != nil {
		return nil, err
	}
	out := batch.NewBuilder(batch.Limits{Full: len(record) + 1024})
	var e batch.Event
	for i := range b.Len() {
		if err := b.Event(i, &e); err != nil {
			return nil, err
		}
		if err := out.CopyEvent(&e); err != nil {
			return nil, err
		}
	}
	out.AppendTx(batch.Tx{Begins: true, Ends: true, Start: at.Source, End: at.Source})
	data, err := out.Finish()
	return bytes.Clone(data), err
}

// emptyTo makes a block that moves progress to a position and changes nothing.
func emptyTo(p sdk.Position) ([]byte, error) {
	out := batch.NewBuilder(batch.Limits{})
	if err := out.Heartbeat(0); err != nil {
		return nil, err
	}
	out.AppendTx(batch.Tx{Begins: true, Ends: true, End: p.Source})
	data, err := out.Finish()
	return bytes.Clone(data), err
}

// forgetLetters drops letters where they are stored.
func (n *Node) forgetLetters(ctx context.Context, cfg *pipeline.Config, w *pipeline.WriterConfig, numbers []uint64) error {
	if !w.Stores {
		return cfg.Progress.Save(ctx, w.Name, &pipeline.Saved{Dropped: numbers})
	}
	if err := send(ctx, cfg, w, &wire.WriteRequest{First: firstOf(w), Last: firstOf(w), Dropped: numbers, Lanes: lanes(w)}); err != nil {
		return err
	}
	return cfg.Progress.Save(ctx, w.Name, &pipeline.Saved{Dropped: numbers}) // the copy
}

const noLetter = "there is no such dead letter"

// anyListed reports whether one of the letters is among those that are listed: the
// task is not stopped for others.
func (n *Node) anyListed(ctx context.Context, d coordination.Definition, writer string, numbers []uint64) (bool, error) {
	p, err := n.store.Progress(ctx, d.UID, writer)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(p.DeadLetters, func(l coordination.DeadLetter) bool { return slices.Contains(numbers, l.Number) }), nil
}

type letterWork func(ctx context.Context, cfg *pipeline.Config, w *pipeline.WriterConfig, held []sdk.DeadLetter, number uint64) (reason string, err error)

// letters does something with dead letters, one after the other, through a claim.
func (n *Node) letters(ctx context.Context, name, writer string, numbers []uint64, work letterWork) ([]api.Outcome, error) {
	d, _, err := n.stored(ctx, name)
	if err != nil {
		return nil, err
	}
	if writer, err = n.oneWriter(ctx, d, writer); err != nil {
		return nil, err
	}
	if len(numbers) == 0 {
		return nil, api.Errorf(api.Usage, "no dead letter named, expected numbers of `datalink task dead-letters %s`", name)
	}
	if known, err := n.anyListed(ctx, d, writer, numbers); err != nil || !known {
		var out []api.Outcome
		for _, number := range numbers {
			out = append(out, api.Outcome{Writer: writer, Number: number, Reason: noLetter})
		}
		return out, err
	}
	var out []api.Outcome
	err = n.maintain(ctx, name, func(ctx context.Context, cfg pipeline.Config) error {
		out = nil // the machine may try again
		w := writerOf(&cfg, writer)
		if w == nil {
			return sdk.Faultf(sdk.CodeInvalidConfig, "task %s has no writer %s", name, writer)
		}
		for _, number := range numbers {
			held, err := n.held(ctx, &cfg, w)
			if err != nil {
				return err
			}
			reason, err := work(ctx, &cfg, w, held, number)
			if err != nil {
				return fmt.Errorf("dead letter %d: %w", number, err)
			}
			out = append(out, api.Outcome{Writer: writer, Number: number, Done: reason == "", Reason: reason})
			if reason == "" && w.Stores { // batch numbers and letters have moved on
				ex := cfg.Execution
				ex.Writer = w.Name
				if w.Claimed, err = w.Sink.Claim(ctx, ex); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return out, err
}

func (n *Node) held(ctx context.Context, cfg *pipeline.Config, w *pipeline.WriterConfig) ([]sdk.DeadLetter, error) {
	c := w.Claimed
	if !w.Stores {
		var err error
		if c, err = cfg.Progress.Load(ctx, w.Name); err != nil {
			return nil, err
		}
	}
	if c == nil {
		return nil, nil
	}
	return c.DeadLetters, nil
}
