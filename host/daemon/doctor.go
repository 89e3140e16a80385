package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/host/config"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
)

// Doctor implements api.Backend. It writes nothing to source or targets.
func (n *Node) Doctor(ctx context.Context, files []api.File) ([]api.Finding, error) {
	out := n.installation()
	var tasks []*config.Task
	if len(files) > 0 {
		t, err := parseFiles(files)
		var problems config.Problems
		switch {
		case errors.As(err, &problems):
			return append(out, configFindings("", problems)...), nil
		case err != nil:
			return out, err
		}
		tasks = t
	} else {
		defs, err := n.store.Tasks(ctx)
		if err != nil {
			return out, err
		}
		for _, d := range defs {
			_, t, err := n.stored(ctx, d.Name)
			if err != nil {
				out = append(out, api.Finding{Severity: "error", Task: d.Name, Subject: "task file", Message: err.Error(), Config: true, Advice: "apply a file that this version can read"})
				continue
			}
			tasks = append(tasks, t)
		}
	}
	for _, t := range tasks {
		out = append(out, n.examine(ctx, t)...)
	}
	return out, nil
}

// installation looks at what concerns all tasks.
func (n *Node) installation() []api.Finding {
	p := n.place
	out := []api.Finding{
		{Severity: "ok", Subject: "data directory", Message: p.DataDir + " is used by one process"},
		{Severity: "ok", Subject: "coordination", Message: "embedded store " + n.store.UID() + ": one node, no service to run"},
	}
	all, err := Installer{n.plugins}.List()
	if err != nil {
		return append(out, api.Finding{Severity: "error", Subject: "plugins", Message: err.Error(), Advice: "install the plugins again"})
	}
	if len(all) == 0 {
		out = append(out, api.Finding{Severity: "warning", Subject: "plugins", Message: "none is bundled and none installed", Advice: "datalink plugin install NAME --registry DIR"})
	}
	for _, pl := range all {
		f := api.Finding{Severity: "ok", Subject: "plugin " + strings.TrimSuffix(pl.Name+" "+pl.Version, " "), Message: "digest holds (" + pl.From + ")"}
		if pl.Status != "ok" {
			f.Severity, f.Message, f.Advice = "error", pl.Status, "install it again"
		}
		out = append(out, f)
	}
	return out
}

func configFindings(task string, problems config.Problems) []api.Finding {
	var out []api.Finding
	for _, p := range problems {
		out = append(out, api.Finding{Severity: "error", Task: task, Subject: "task file", Message: p.String(), Advice: "mend the file at that place", Config: true})
	}
	return out
}

// examine starts a task's connectors and asks them what would make it fail.
func (n *Node) examine(ctx context.Context, t *config.Task) []api.Finding {
	fail := func(subject string, err error) []api.Finding {
		var problems config.Problems
		if errors.As(err, &problems) {
			return configFindings(t.Name, problems)
		}
		f := sdk.AsFault(err)
		return []api.Finding{{Severity: "error", Task: t.Name, Subject: subject, Message: f.Message, Advice: orElse(f.Suggestion, "mend the cause and run doctor again")}}
	}
	if missing := n.plugins.Missing([]*config.Task{t}); len(missing) > 0 {
		return configFindings(t.Name, missing)
	}
	s := n.starter()

	c, err := s.start(ctx, t, sdk.Execution{Task: t.Name}, true)
	if err != nil {
		return fail("connectors", err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	var out []api.Finding
	for _, f := range c.found {
		out = append(out, api.Finding{Severity: f.Severity.String(), Task: t.Name, Subject: f.Instance + ": " + f.Subject, Message: strings.TrimPrefix(f.Message, f.Subject+": "), Advice: f.Advice})
	}
	for _, w := range t.Writers {
		out = append(out, levelFinding(t, w.Name, c.levels[w.Name]))
	}
	out = append(out, n.history(ctx, t)...)
	if !slices.ContainsFunc(out, func(f api.Finding) bool { return f.Severity == "error" }) {
		out = append(out, api.Finding{Severity: "ok", Task: t.Name, Subject: "connectors", Message: "all start, are configured and report nothing that would make the task fail"})
	}
	return out
}

func levelFinding(t *config.Task, writer string, l manifest.Level) api.Finding {
	f := api.Finding{Severity: "ok", Task: t.Name, Subject: writer + ": level", Message: string(l)}
	switch l {
	case manifest.LevelTransactional:
		f.Message += ": rows and progress in one transaction, exactly once"
	case manifest.LevelVersioned:
		f.Message += ": late writes are outranked"
	default:
		f.Severity = "warning"
		f.Message += ": a late execution can leave older values; overlaps are repaired"
		f.Advice = "keep one store for all workers of the task"
	}
	return f
}

// history looks at what the store knows of the task.
func (n *Node) history(ctx context.Context, t *config.Task) []api.Finding {
	d, err := n.store.Task(ctx, t.Name)
	if err != nil {
		if errors.Is(err, coordination.ErrNotFound) {
			return nil
		}
		return []api.Finding{{Severity: "error", Task: t.Name, Subject: "coordination", Message: err.Error(), Advice: "look at the data directory"}}
	}
	var out []api.Finding
	letters, err := n.DeadLetters(ctx, t.Name)
	if err == nil && len(letters) > 0 {
		out = append(out, api.Finding{
			Severity: "warning", Task: t.Name, Subject: "dead letters", Message: fmt.Sprintf("%d set aside; they hold back later changes of their keys", len(letters)),
			Advice: "datalink task dead-letters " + t.Name,
		})
	}
	overlaps, err := n.store.Overlaps(ctx)
	if err != nil {
		return out
	}
	open := 0
	for i := range overlaps {
		if overlaps[i].TaskUID == d.UID && overlaps[i].IsOpen() {
			open++
		}
	}
	if open > 0 {
		out = append(out, api.Finding{Severity: "warning", Task: t.Name, Subject: "overlaps", Message: fmt.Sprintf("%d are open", open), Advice: "datalink audit list"})
	}
	return out
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
