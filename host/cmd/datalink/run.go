package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/host/config"
	"github.com/datalink-go/datalink/host/daemon"
)

func (a *app) runCommand() *cobra.Command {
	var until string
	var takeOver bool
	c := &cobra.Command{
		Use: "run TASK.yaml", Short: "Run one task in the foreground",
		Long: `Run one task in the foreground on the store of the data directory. It ends when
the source has ended, at --until, or at SIGINT or SIGTERM, which stop reading,
write what was read and save the position. A second run goes on from there.`,
		Example: "  datalink run task.yaml --data-dir ./data\n  datalink run task.yaml --until caught-up -o json",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			u, err := parseUntil(until)
			if err != nil {
				return err
			}
			return a.runTask(c.Context(), args[0], u, takeOver)
		},
	}
	c.Flags().StringVar(&until, "until", "", "when to end: caught-up (all that the source had is written, nothing new for 2 s), end (of the source) or a duration such as 30s")
	c.Flags().BoolVar(&takeOver, "take-over", false, "claim targets that another store or task has claimed, and fence its executions")
	return c
}

func parseUntil(s string) (daemon.Until, error) {
	switch s {
	case "", "end":
		return daemon.Until{}, nil
	case "caught-up":
		return daemon.Until{CaughtUp: true}, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return daemon.Until{}, api.Errorf(api.Usage, "--until: found %q, expected caught-up, end or a duration such as 30s", s)
	}
	return daemon.Until{After: d}, nil
}

func (a *app) runTask(ctx context.Context, file string, until daemon.Until, takeOver bool) error {
	tasks, err := config.Load(file)
	if err != nil {
		return api.As(api.Usage, err)
	}
	if len(tasks) != 1 {
		return api.Errorf(api.Usage, "%s: found %d tasks, expected one: apply them to a daemon with `datalink task apply`", file, len(tasks))
	}
	// The lock outlasts a killed process until its plugins are gone too.
	n, err := a.node(context.WithoutCancel(ctx), slog.LevelWarn, 10*time.Second)
	if err != nil {
		return err
	}
	p := newProgress(a.err, tasks[0].Name)
	sum, err := n.RunTask(ctx, tasks[0], daemon.RunOptions{TakeOver: takeOver, Until: until, Watch: p.show})
	p.end()
	if cerr := n.Close(); cerr != nil {
		a.note("datalink: close: %v", cerr)
	}
	if sum == nil {
		return err
	}
	if serr := a.show(sum, func() { a.summary(sum, err) }); serr != nil {
		return serr
	}
	if sum.Nothing() && a.output == "json" {
		a.note("nothing to do: %s", sum.Reason)
	}
	return err
}

// summary prints how a run went. What made it fail is err, which is printed after
// it.
func (a *app) summary(s *daemon.Summary, err error) {
	switch {
	case s.Nothing():
		a.line("task %s: nothing to do: %s", s.Task, s.Reason)
	case err == nil || api.KindOf(err) == api.Interrupted:
		a.line("task %s: %s (%s)", s.Task, s.State, s.Reason)
	case !s.Began():
		return
	default:
		a.line("task %s: %s", s.Task, s.State)
	}
	c := s.Records
	a.line("  read %d, filtered %d, written %d, skipped %d, dead-lettered %d in %.1f s", c.Read, c.Filtered, c.Written, c.Skipped, c.DeadLettered, s.DurationSeconds)
	a.tables(s)
	for _, w := range s.Writers {
		more := ""
		if c := w.Records; c != nil {
			more = fmt.Sprintf(": filtered %d, written %d, skipped %d, dead-lettered %d", c.Filtered, c.Written, c.Skipped, c.DeadLettered)
		}
		a.line("  writer %s (%s) at %s%s", w.Name, orDash(w.Level), orDash(w.Position), more)
	}
}

func (a *app) tables(s *daemon.Summary) {
	if len(s.Tables) == 0 {
		return
	}
	head, writers := "  ", len(s.Writers) > 1
	if writers {
		head = "  WRITER\t"
	}
	a.table(head+"TABLE\tINSERTED\tUPDATED\tDELETED", func(row func(string, ...any)) {
		for _, t := range s.Tables {
			first := "  "
			if writers {
				first = "  " + t.Writer + "\t"
			}
			row("%s%s\t%d\t%d\t%d", first, t.Name, t.Inserted, t.Updated, t.Deleted)
		}
	})
}
