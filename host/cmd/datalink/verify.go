package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/host/verify"
)

func (a *app) verifyCommand() *cobra.Command {
	q := api.VerifyQuery{Action: "start"}
	var resume, status, cancel, detach bool
	c := &cobra.Command{
		Use: "verify TASK", Short: "Compare source and target row by row while the task runs",
		Long: `Compares the rows of the source, as mappings and transforms make them, with those
of the targets, key by key, while the task runs. What differs only because the
target lags is looked at again until it is settled; keys that differ are named.
With --repair they are written again through the running task.

The verification belongs to the daemon: it goes on when this command or the daemon
is killed. Ctrl-C and SIGTERM cancel it; --resume goes on with one that was
cancelled or failed.
The exit code is 5 when keys differ that were not repaired.`,
		Example: "  datalink verify orders\n  datalink verify orders --table 'shop.*' --repair --max-rows-per-second 20000", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			n := 0
			for action, set := range map[string]bool{"resume": resume, "cancel": cancel, "": status} {
				if set {
					q.Action = action
					n++
				}
			}
			if n > 1 {
				return api.Errorf(api.Usage, "--resume, --cancel and --status: expected one of them")
			}
			if q.MaxRowsPerSecond < 0 {
				return api.Errorf(api.Usage, "--max-rows-per-second: found %d, expected 0 or more", q.MaxRowsPerSecond)
			}
			return a.with(c, func(ctx context.Context, b api.Backend) error {
				s, err := b.Verify(ctx, args[0], q)
				if err != nil {
					return err
				}
				if !detach && !status && !cancel {
					if s, err = a.awaitVerify(ctx, b, s); err != nil {
						return err
					}
				}
				err = a.show(s, func() { a.verified(s) })
				switch {
				case err != nil:
					return err
				case s.Phase == verify.Failed:
					return api.Errorf(api.Failed, "verification of task %s: %s; --resume goes on with it", s.Task, s.Reason)
				case s.Differences() > 0:
					return api.Errorf(api.Differences, "task %s: %d keys differ", s.Task, s.Differences())
				}
				return nil
			})
		},
	}
	f := c.Flags()
	f.StringArrayVar(&q.Tables, "table", nil, "table of the source, a name or a pattern of database.table; may be repeated (default: all that the task reads)")
	f.BoolVar(&q.Repair, "repair", false, "write keys that differ again, through the running task")
	f.IntVar(&q.MaxRowsPerSecond, "max-rows-per-second", 0, "rows of the source to compare a second at most; 0 = no limit")
	f.BoolVar(&resume, "resume", false, "go on with a verification that was cancelled or has failed")
	f.BoolVar(&status, "status", false, "show how far it is or what it found, and do not wait")
	f.BoolVar(&cancel, "cancel", false, "end it; --resume goes on")
	f.BoolVar(&detach, "detach", false, "do not wait for its end")
	return c
}

// awaitVerify shows progress until the verification has ended. When it is
// interrupted it cancels it.
func (a *app) awaitVerify(ctx context.Context, b api.Backend, s *verify.State) (*verify.State, error) {
	id, told := s.ID, time.Now()
	for s.Phase == verify.Running {
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
			defer cancel()
			if _, err := b.Verify(last, s.Task, api.VerifyQuery{Action: "cancel"}); err != nil {
				return nil, err
			}
			return nil, api.Errorf(api.Interrupted, "cancelled at %.0f %%: `datalink verify %s --resume` goes on", s.Percent, s.Task)
		}
		now, err := b.Verify(ctx, s.Task, api.VerifyQuery{})
		if err != nil {
			if ctx.Err() != nil {
				continue
			}
			return nil, err
		}
		if now.ID != id {
			return nil, api.Errorf(api.Failed, "another verification of task %s was begun", s.Task)
		}
		s = now
		if time.Since(told) >= 2*time.Second {
			told = time.Now()
			a.note("%s", progressOf(s))
		}
	}
	return s, nil
}

func progressOf(s *verify.State) string {
	rows, at := uint64(0), ""
	for i := range s.Results {
		t := &s.Results[i]
		rows += t.Rows
		if t.Phase == "running" {
			at = ", at " + t.Table
		}
	}
	return fmt.Sprintf("verify %s: %.0f %%, %d rows, %d keys differ%s", s.Task, s.Percent, rows, s.Differences(), at)
}

func (a *app) verified(s *verify.State) {
	a.line("verification of task %s: %s, %.0f %%", s.Task, s.Phase, s.Percent)
	a.table("WRITER\tTABLE\tSIDE\tPHASE\tROWS\tMISSING\tEXTRA\tDIFFERENT\tREPAIRED\tUNSETTLED", func(row func(string, ...any)) {
		for i := range s.Results {
			t := &s.Results[i]
			row("%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d", t.Writer, t.Table, t.Side, t.Phase, t.Rows, t.Missing, t.Extra, t.Different, t.Repaired, t.Unsettled)
		}
	})
	for i := range s.Results {
		t := &s.Results[i]
		if t.Reason != "" {
			a.line("%s: %s", t.Table, t.Reason)
		}
		for _, d := range t.Differing {
			text := fmt.Sprintf("%s %s %s", d.Kind, d.Table, d.Key)
			var cols []string
			for _, c := range d.Columns {
				cols = append(cols, fmt.Sprintf("%s: source %s, target %s", c.Name, c.Source, c.Target))
			}
			if len(cols) > 0 {
				text += " (" + strings.Join(cols, "; ") + ")"
			}
			if d.Repaired {
				text += ", repaired"
			}
			a.line("%s", text)
		}
	}
	if n := s.Unsettled(); n > 0 {
		a.line("%d keys changed too often to be compared", n)
	}
}
