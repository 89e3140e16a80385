package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/datalink-go/datalink/host/api"
)

func (a *app) workerCommand() *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List the workers and what they run", Example: "  datalink worker list -o json", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.with(c, func(ctx context.Context, b api.Backend) error {
				all, err := b.Workers(ctx)
				if err != nil {
					return err
				}
				return a.show(map[string]any{"workers": all}, func() { a.workers(all) })
			})
		},
	}
	var end bool
	drain := &cobra.Command{
		Use: "drain WORKER", Short: "Let a worker hand over all its tasks and get no more", Example: "  datalink worker drain db7-1f2e3d4c\n  datalink worker drain --end db7-1f2e3d4c",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c, func(ctx context.Context, b api.Backend) error {
				all, err := b.Drain(ctx, args[0], !end)
				if err != nil {
					return err
				}
				return a.show(map[string]any{"workers": all}, func() { a.workers(all) })
			})
		},
	}
	drain.Flags().BoolVar(&end, "end", false, "let it have tasks again")
	forget := &cobra.Command{
		Use: "forget WORKER", Short: "Say that nothing of a worker lives any more", Example: "  datalink worker forget db7-1f2e3d4c", Args: cobra.ExactArgs(1),
		Long: "Say that a worker which is gone, its machine and its plugins are dead for sure. Its\nexecutions count as proven dead from then on, and open audit records about them are closed.",
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c, func(ctx context.Context, b api.Backend) error {
				if err := b.Forget(ctx, args[0]); err != nil {
					return err
				}
				return a.show(map[string]any{"worker": args[0], "forgotten": true}, func() { a.line("worker %s is forgotten", args[0]) })
			})
		},
	}
	return group("worker", "Workers of a cluster", "  datalink worker list", list, drain, forget)
}

func (a *app) workers(all []api.Worker) {
	a.table("WORKER\tSTATE\tGROUPS\tHOST\tPID\tTASKS\tRUNNING\tJOINED", func(row func(string, ...any)) {
		for _, w := range all {
			state := w.State
			if w.Leader {
				state += ", leader"
			}
			row("%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s", w.ID, state, orDash(strings.Join(w.Groups, ",")), orDash(w.Host), w.PID, len(w.Tasks), w.Running, when(w.JoinedAt))
		}
	})
}

func (a *app) groupCommand() *cobra.Command {
	list := &cobra.Command{
		Use: "list", Short: "List groups of tasks and their workers", Example: "  datalink group list", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.with(c, func(ctx context.Context, b api.Backend) error {
				all, err := b.Groups(ctx)
				if err != nil {
					return err
				}
				return a.show(map[string]any{"groups": all}, func() {
					a.table("GROUP\tTASKS\tWAITING\tWORKERS", func(row func(string, ...any)) {
						for _, g := range all {
							row("%s\t%d\t%d\t%s", g.Name, g.Tasks, len(g.Waiting), orDash(strings.Join(g.Workers, ",")))
						}
					})
				})
			})
		},
	}
	rebalance := &cobra.Command{
		Use: "rebalance GROUP", Short: "Even out the load of a group's workers now", Example: "  datalink group rebalance default", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c, func(ctx context.Context, b api.Backend) error {
				if err := b.Rebalance(ctx, args[0]); err != nil {
					return err
				}
				return a.show(map[string]any{"group": args[0], "requested": true}, func() { a.line("group %s is rebalanced; see `datalink worker list`", args[0]) })
			})
		},
	}
	return group("group", "Groups of tasks and workers", "  datalink group list", list, rebalance)
}

func (a *app) testAlertCommand() *cobra.Command {
	return &cobra.Command{
		Use: "test-alert", Short: "Send a test to every alert channel of the daemon", Example: "  datalink audit test-alert", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.with(c, func(ctx context.Context, b api.Backend) error {
				all, err := b.TestAlert(ctx)
				if err != nil {
					return err
				}
				err = a.show(map[string]any{"channels": all}, func() {
					a.table("CHANNEL\tRESULT", func(row func(string, ...any)) {
						for _, t := range all {
							result := "ok"
							if !t.OK {
								result = t.Error
							}
							row("%s\t%s", t.Channel, result)
						}
					})
				})
				for _, t := range all {
					if err == nil && !t.OK {
						return api.Errorf(api.Failed, "alert channel %s does not work: %s", t.Channel, t.Error)
					}
				}
				return err
			})
		},
	}
}
