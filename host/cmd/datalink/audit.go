package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/api"
)

func (a *app) auditCommand() *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List overlapping executions", Example: "  datalink audit list", Args: cobra.NoArgs,
		Long: "List executions of one task that ran, or may have run, at the same time.\nThe exit code is 5 when one of them is possibly dirty and still open.",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.with(c, func(ctx context.Context, b api.Backend) error {
				all, err := b.Overlaps(ctx)
				if err != nil {
					return err
				}
				err = a.show(map[string]any{"overlaps": all}, func() { a.overlaps(all) })
				for i := range all {
					if err == nil && all[i].Verdict == coordination.PossiblyDirty && all[i].IsOpen() {
						return api.Errorf(api.Differences, "overlap %s is open: the target may hold late writes", all[i].ID)
					}
				}
				return err
			})
		},
	}
	show := &cobra.Command{
		Use: "show ID", Short: "Show one overlap", Example: "  datalink audit show 0193…", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c, func(ctx context.Context, b api.Backend) error {
				o, err := b.Overlap(ctx, args[0])
				if err != nil {
					return err
				}
				return a.show(o, func() { a.overlap(o) })
			})
		},
	}
	return group("audit", "Executions that overlapped", "  datalink audit list", list, show, a.testAlertCommand(), notYet("repair"))
}

func (a *app) overlaps(all []coordination.Overlap) {
	if len(all) == 0 {
		a.line("no overlaps")
		return
	}
	a.table("ID\tTASK\tCERTAIN\tVERDICT\tLATE\tOWNER\tFROM\tTO", func(row func(string, ...any)) {
		for _, o := range all {
			row("%s\t%s\t%v\t%s\t%s\t%s\t%s\t%s", o.ID, o.Task, o.Certain, o.Verdict, orDash(o.Late.ExecutionID), orDash(o.Owner.ExecutionID), when(o.From), when(o.To))
		}
	})
}

func (a *app) overlap(o *coordination.Overlap) {
	a.line("overlap    %s of task %s", o.ID, o.Task)
	a.line("cause      %s (certain: %v)", o.Cause, o.Certain)
	a.line("verdict    %s", o.Verdict)
	a.line("late       %s, epoch %d, worker %s", orDash(o.Late.ExecutionID), o.Late.Epoch, orDash(o.Late.Worker))
	a.line("owner      %s, epoch %d, worker %s", orDash(o.Owner.ExecutionID), o.Owner.Epoch, orDash(o.Owner.Worker))
	a.line("window     %s to %s", when(o.From), when(o.To))
	for _, w := range o.Writers {
		a.line("writer     %s (%s): %d batches written, %d refused", w.Name, w.Level, w.Written, w.Refused)
	}
	for _, t := range o.Tables {
		a.line("table      %s", t)
	}
	a.line("done       %s", orDash(o.Done))
	if o.Detail != "" {
		a.line("detail     %s", o.Detail)
	}
	for _, r := range o.Resolutions {
		a.line("resolution %s by %s: %s", when(r.At), r.By, r.What)
	}
}
