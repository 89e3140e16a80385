package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/datalink-go/datalink/host/api"
)

func (a *app) lettersCommand() *cobra.Command {
	var writer string
	c := &cobra.Command{
		Use: "dead-letters TASK [list | show N | retry N… | drop N…]", Short: "Records that were set aside",
		Long: `A record that cannot be written is set aside under onError: dead-letter, and
later changes of its key follow it. Retry writes all that was set aside of a key,
in order; drop forgets a record, so that the key is written again by its next
change. Both stop the task for a moment and go through a claim of the target.`,
		Example: "  datalink task dead-letters orders\n  datalink task dead-letters orders show 3\n  datalink task dead-letters orders retry 3 7 --writer warehouse",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			task, verb, rest := args[0], "list", []string(nil)
			if len(args) > 1 {
				verb, rest = args[1], args[2:]
			}
			numbers, err := numbersArg(rest)
			switch {
			case err != nil:
				return err
			case verb == "list" && len(rest) == 0, verb == "show" && len(rest) == 1, (verb == "retry" || verb == "drop") && len(rest) > 0:
			default:
				return api.Errorf(api.Usage, "found %q, expected list, show N, retry N… or drop N…", args[1:])
			}
			return a.with(c, func(ctx context.Context, b api.Backend) error { return a.letters(ctx, b, task, verb, writer, numbers) })
		},
	}
	c.Flags().StringVar(&writer, "writer", "", "which writer's (default: the only one)")
	return c
}

func (a *app) letters(ctx context.Context, b api.Backend, task, verb, writer string, numbers []uint64) error {
	switch verb {
	case "show":
		l, err := b.DeadLetter(ctx, task, writer, numbers[0])
		if err != nil {
			return err
		}
		return a.show(l, func() { a.showLetter(l) })
	case "retry", "drop":
		do := b.Retry
		if verb == "drop" {
			do = b.Drop
		}
		out, err := do(ctx, task, writer, numbers)
		if err != nil {
			return err
		}
		left := 0
		err = a.show(map[string]any{"task": task, "outcomes": out}, func() {
			for _, o := range out {
				if o.Done {
					a.line("dead letter %d of %s: done", o.Number, o.Writer)
				} else {
					a.line("dead letter %d of %s: left as it is: %s", o.Number, o.Writer, o.Reason)
				}
			}
		})
		for _, o := range out {
			if !o.Done {
				left++
			}
		}
		if err == nil && left > 0 {
			return api.As(api.Failed, fmt.Errorf("%d of %d dead letters were left as they are%w", left, len(out), errSilent))
		}
		return err
	}
	all, err := b.DeadLetters(ctx, task)
	if err != nil {
		return err
	}
	return a.show(map[string]any{"task": task, "deadLetters": all}, func() {
		if len(all) == 0 {
			a.line("task %s has no dead letters", task)
			return
		}
		a.table("WRITER\tNUMBER\tTABLE\tKEY\tCODE\tAT\tMESSAGE", func(row func(string, ...any)) {
			for _, l := range all {
				row("%s\t%d\t%s\t%s\t%s\t%s\t%s", l.Writer, l.Number, l.Table, l.Key, l.Code, when(l.At), firstLine(l.Message))
			}
		})
	})
}

func (a *app) showLetter(l *api.DeadLetter) {
	a.line("writer    %s", l.Writer)
	a.line("number    %d", l.Number)
	a.line("change    %s of %s (%s)", l.Kind, l.Table, l.Key)
	a.line("position  %s", l.Position)
	a.line("at        %s", when(l.At))
	a.line("error     %s: %s", l.Code, l.Message)
	if l.Advice != "" {
		a.line("advice    %s", l.Advice)
	}
	for _, side := range []struct {
		name string
		row  map[string]*string
	}{{"before", l.Before}, {"after", l.After}} {
		for _, col := range slices.Sorted(maps.Keys(side.row)) {
			v := "NULL"
			if side.row[col] != nil {
				v = fmt.Sprintf("%q", *side.row[col])
			}
			a.line("%-9s %s = %s", side.name, col, v)
		}
	}
}
