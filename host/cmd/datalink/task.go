package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/host/daemon"
)

func (a *app) taskCommand() *cobra.Command {
	return group("task", "Tasks of a daemon or data directory", "  datalink task apply orders.yaml\n  datalink task show orders",
		a.applyCommand(), a.listCommand(), a.showCommand(),
		a.changeCommand(api.Pause, "Stop a task, drained, until it is resumed"),
		a.changeCommand(api.Resume, "Let a paused or failed task run"),
		a.changeCommand(api.Restart, "Stop a task, drained, and start it again"),
		a.deleteCommand(), a.positionCommand(), a.lettersCommand(), a.snapshotCommand())
}

func readFiles(paths []string) ([]api.File, error) {
	var out []api.File
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			return nil, api.Errorf(api.Usage, "%s: cannot be read: %w", p, cause(err))
		}
		out = append(out, api.File{Name: p, Text: string(data)})
	}
	return out, nil
}

// cause is an error of a file without the path.
func cause(err error) error {
	var e *os.PathError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

func (a *app) applyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "apply FILE…", Short: "Create tasks, or change those that are there", Example: "  datalink task apply tasks/*.yaml",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			files, err := readFiles(args)
			if err != nil {
				return err
			}
			return a.with(c, func(ctx context.Context, b api.Backend) error {
				done, err := b.Apply(ctx, files)
				if err != nil {
					return err
				}
				return a.show(map[string]any{"tasks": done}, func() {
					for _, d := range done {
						hint := ""
						if d.Desired == "paused" {
							hint = ", paused: `datalink task resume " + d.Task + "` lets it run"
						}
						a.line("task %s: %s%s", d.Task, d.Action, hint)
					}
					a.nobody(b)
				})
			})
		},
	}
}

func (a *app) listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List tasks and how they are", Example: "  datalink task list -o json", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.with(c, func(ctx context.Context, b api.Backend) error {
				tasks, err := b.Tasks(ctx)
				if err != nil {
					return err
				}
				return a.show(map[string]any{"tasks": tasks}, func() {
					if len(tasks) == 0 {
						a.line("no tasks: `datalink task apply FILE` creates them")
						return
					}
					a.table("NAME\tDESIRED\tSTATE\tEPOCH\tREASON", func(row func(string, ...any)) {
						for _, t := range tasks {
							row("%s\t%s\t%s\t%d\t%s", t.Name, t.Desired, t.State, t.Epoch, orDash(firstLine(t.Reason)))
						}
					})
				})
			})
		},
	}
}

// firstLine shortens a text for a table; the command for one thing has all of it.
func firstLine(s string) string {
	const most = 120
	l, rest, _ := strings.Cut(s, "\n")
	if r := []rune(l); len(r) > most {
		l, rest = strings.TrimRight(string(r[:most]), " "), "…"
	}
	if rest != "" {
		l += " …"
	}
	return l
}

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show TASK", Short: "Show a task: state, positions, executions", Example: "  datalink task show orders", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c, func(ctx context.Context, b api.Backend) error {
				t, err := b.Task(ctx, args[0])
				if err != nil {
					return err
				}
				return a.show(t, func() { a.showTask(t) })
			})
		},
	}
}

func (a *app) showTask(t *api.Task) {
	a.line("task       %s (uid %s, version %d)", t.Name, t.UID, t.Version)
	a.line("desired    %s", t.Desired)
	a.line("state      %s", t.State)
	if t.Reason != "" {
		a.line("reason     %s", t.Reason)
	}
	if t.ExecutionID != "" {
		where := ""
		if t.Worker != "" {
			where = fmt.Sprintf(", worker %s, since %s", t.Worker, when(t.StartedAt))
		}
		a.line("execution  %s, epoch %d%s", t.ExecutionID, t.Epoch, where)
	}
	a.positions(t.Positions)
	if len(t.Executions) > 0 {
		a.line("journal")
		a.table("  AT\tENTRY\tEXECUTION\tEPOCH\tREASON", func(row func(string, ...any)) {
			for _, e := range t.Executions {
				row("  %s\t%s\t%s\t%d\t%s", when(e.At), e.Kind, e.ExecutionID, e.Epoch, orDash(e.Reason))
			}
		})
	}
}

func (a *app) positions(all []api.Position) {
	if len(all) == 0 {
		a.line("no position is stored yet")
		return
	}
	a.table("WRITER\tLANE\tPOSITION\tUPDATED", func(row func(string, ...any)) {
		for _, p := range all {
			row("%s\t%d\t%s\t%s", p.Writer, p.Lane, p.Position, when(p.UpdatedAt))
		}
	})
}

// nobody says that what is wanted to run does not, as there is no daemon.
func (a *app) nobody(b api.Backend) {
	if _, local := b.(*daemon.Node); local {
		a.note("no daemon uses %s: `datalink serve --data-dir %s` runs its tasks", a.dataDir, a.dataDir)
	}
}

func (a *app) changeCommand(to api.Change, short string) *cobra.Command {
	var takeOver bool
	c := &cobra.Command{
		Use: string(to) + " TASK", Short: short, Example: "  datalink task " + string(to) + " orders", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c, func(ctx context.Context, b api.Backend) error {
				if takeOver {
					to = api.TakeOver
				}
				t, err := b.Change(ctx, args[0], to)
				if err != nil {
					return err
				}
				return a.show(t, func() {
					a.line("task %s: desired %s, now %s", t.Name, t.Desired, t.State)
					if to != api.Pause {
						a.nobody(b)
					}
				})
			})
		},
	}
	if to == api.Resume {
		c.Flags().BoolVar(&takeOver, "take-over", false, "claim targets that another store or task has claimed, and fence its executions")
	}
	return c
}

func (a *app) deleteCommand() *cobra.Command {
	var release bool
	c := &cobra.Command{
		Use: "delete TASK", Short: "Stop and remove a task; its journal stays",
		Long: `Stop and remove a task. What it wrote stays at the targets, and so does its
bookkeeping there: a new task of the same name is refused by a target until it
takes over (run or task resume with --take-over), and a replication slot at the
source goes on keeping log. With --release the bookkeeping goes, too.`,
		Example: "  datalink task delete orders --release", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.with(c, func(ctx context.Context, b api.Backend) error {
				t, err := b.Task(ctx, args[0])
				if err != nil {
					return err
				}
				if err := b.Delete(ctx, args[0], release); err != nil {
					return err
				}
				if !release {
					a.note("task %s: what it keeps at source and targets stays there, under the id %s. Where the source is PostgreSQL its replication slot, %s, keeps the server from removing log until it is dropped: "+
						"SELECT pg_drop_replication_slot('%[3]s'). datalink task delete %[1]s --release would have removed all of it.", t.Name, t.UID, "datalink_"+strings.ReplaceAll(t.UID, "-", ""))
				}
				return a.show(map[string]any{"task": args[0], "deleted": true}, func() { a.line("task %s: deleted", args[0]) })
			})
		},
	}
	c.Flags().BoolVar(&release, "release", false, "also remove the task's bookkeeping at source and targets")
	return c
}

func (a *app) positionCommand() *cobra.Command {
	var set, at string
	c := &cobra.Command{
		Use: "position TASK", Short: "Show or set how far a task came",
		Long: `Show how far each writer came. --set stops the task, writes the position through
a claim into every target, and lets the task go on: what lies between is then
neither read again nor missing by accident.`,
		Example: "  datalink task position orders\n  datalink task position orders --set mysql-bin.000003:4711", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if at != "" {
				return api.Errorf(api.Usage, "--at: not in this version")
			}
			return a.with(c, func(ctx context.Context, b api.Backend) error {
				var all []api.Position
				var err error
				if set != "" {
					all, err = b.SetPosition(ctx, args[0], set)
				} else {
					all, err = b.Position(ctx, args[0])
				}
				if err != nil {
					return err
				}
				return a.show(map[string]any{"task": args[0], "positions": all}, func() { a.positions(all) })
			})
		},
	}
	c.Flags().StringVar(&set, "set", "", "position to go on from, as printed by this command")
	c.Flags().StringVar(&at, "at", "", "not in this version")
	_ = c.Flags().MarkHidden("at")
	return c
}

func numbersArg(args []string) ([]uint64, error) {
	var out []uint64
	for _, s := range args {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return nil, api.Errorf(api.Usage, "dead letter %q: expected a number", s)
		}
		out = append(out, n)
	}
	return out, nil
}
