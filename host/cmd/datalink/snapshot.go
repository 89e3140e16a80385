package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/datalink-go/datalink/host/api"
)

func (a *app) snapshotCommand() *cobra.Command {
	var q api.SnapshotQuery
	var pause, resume bool
	c := &cobra.Command{
		Use: "snapshot TASK", Short: "Take tables anew while the task runs, or show how far that is",
		Long: `Without options, shows how far the snapshots of a running task are. With --table,
reads the rows of these tables and weaves them into the stream: for a table that
was added at the target, or whose target is in doubt; rows that only the target
has are deleted. The request is stored with the task's progress. --pause and
--resume stop and go on with reading rows; the stream runs all the while.`,
		Example: "  datalink task snapshot orders\n  datalink task snapshot orders --table shop.items --table 'shop.price_*'", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case pause && resume:
				return api.Errorf(api.Usage, "--pause and --resume: expected one of them")
			case pause:
				q.Action = "pause"
			case resume:
				q.Action = "resume"
			}
			return a.with(c, func(ctx context.Context, b api.Backend) error {
				s, err := b.Snapshot(ctx, args[0], q)
				if err != nil {
					return err
				}
				return a.show(s, func() { a.snapshots(s) })
			})
		},
	}
	c.Flags().StringArrayVar(&q.Tables, "table", nil, "table to take anew, a name or a pattern of database.table; may be repeated")
	c.Flags().BoolVar(&pause, "pause", false, "stop reading rows")
	c.Flags().BoolVar(&resume, "resume", false, "go on with reading rows")
	return c
}

func (a *app) snapshots(s *api.Snapshot) {
	if len(s.Accepted) > 0 {
		a.line("task %s: will be read: %s", s.Task, strings.Join(s.Accepted, ", "))
	}
	if len(s.Tables) == 0 {
		a.line("no snapshots: `datalink task snapshot %s --table NAME` takes a table", s.Task)
		return
	}
	if s.Paused {
		a.line("paused: `datalink task snapshot %s --resume` goes on", s.Task)
	}
	a.line("rows/s  %d", s.RowsPerSecond)
	a.table("TABLE\tPHASE\tROWS\tOF ABOUT\tPERCENT", func(row func(string, ...any)) {
		for _, t := range s.Tables {
			row("%s\t%s\t%d\t%d\t%.0f", t.Table, t.Phase, t.Rows, t.Estimate, t.Percent)
		}
	})
}
