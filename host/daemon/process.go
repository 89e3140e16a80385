package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/datalink-go/datalink/host/config"
	"github.com/datalink-go/datalink/host/supervisor"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/wire"
)

// Checked is what a connector's Check said.
type Checked struct {
	Instance string
	Plugin   string
	sdk.Finding
}

// CheckError says that a connector found what would make the task fail.
type CheckError struct{ Findings []Checked }

// Error lists them.
func (e *CheckError) Error() string {
	var lines []string
	for _, f := range e.Findings {
		line := fmt.Sprintf("%s (%s): %s: %s", f.Instance, f.Plugin, f.Subject, strings.TrimPrefix(f.Message, f.Subject+": "))
		if f.Advice != "" {
			line += " (" + f.Advice + ")"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// process starts a connector that is a process and waits until it is configured.
func (c *connectors) process(ctx context.Context, conn config.Connector, role manifest.Role, instance string) (*supervisor.Plugin, error) {
	p, err := c.s.plugins.Find(conn.Plugin)
	if err != nil {
		return nil, config.Problems{conn.Plugin.Problem(instance, err.Error(), "an installed plugin")}
	}
	if p.Kind != "process" {
		return nil, config.Problems{conn.Plugin.Problem(instance, fmt.Sprintf("is a WASM module, which cannot be a %s in this version", role), "a plugin that is a process")}
	}
	secrets, err := conn.Config.Resolve(c.s.sources)
	if err != nil {
		return nil, err
	}
	img, err := supervisor.OpenImage(p.Name, p.Path, p.SHA256)
	if err != nil {
		return nil, err
	}
	c.images = append(c.images, img)
	cfg := supervisor.Config{
		Image: img, Role: role, Task: c.task.Name, Instance: instance, Manifest: p.Claim,
		Env: pluginEnv(), Dir: c.s.dir, SocketDir: c.s.sockets, Log: c.log, Metrics: c.s.metrics, Limits: limits(),
	}
	if c.s.lock != nil {
		cfg.Inherit = []*os.File{c.s.lock}
	}
	first := true
	// The supervisor tries for minutes, which is right for a plugin that once ran;
	// here somebody waits to hear what is wrong.
	begin, giveUp := context.WithCancel(ctx)
	defer giveUp()
	opts := supervisor.Options{OnChange: func(st supervisor.State) {
		if st.Phase == supervisor.BackOff && st.Attempt >= startTries {
			giveUp() // of no effect once it was ready
		}
	}}
	sup := supervisor.NewPlugin(c.s.launcher, cfg, supervisor.Setup{Config: secrets.JSON(), LogLevel: c.s.level, FailPoints: c.s.failPoints(instance)}, opts,
		func(ctx context.Context, cl *supervisor.Client, is *wire.ConfigureReply) error {
			if first {
				if err := c.checked(ctx, cl.Check, p, cl.Manifest(), role, conn, instance, secrets); err != nil {
					return err
				}
				if is.Level != "" || len(is.Capabilities) > 0 { // of this configuration; older plugins do not say
					f := c.facets[instance]
					f.Capabilities = is.Capabilities
					c.facets[instance] = f
				}
				first = false
			}
			return c.running(instance, cl)
		})
	if _, err := sup.Ready(begin); err != nil {
		sup.Close()
		return nil, c.explain(err, conn, instance, secrets)
	}
	return sup, nil
}

// startTries is how often a plugin may fail to start in a row before the task's
// start has failed.
const startTries = 3

// rootOf returns the cause that a supervisor's error names last.
func rootOf(err error) error {
	for {
		m, ok := err.(interface{ Unwrap() []error })
		if !ok {
			return err
		}
		all := m.Unwrap()
		err = all[len(all)-1]
	}
}

// running remembers a process, so that Kill finds it.
func (c *connectors) running(instance string, cl *supervisor.Client) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killed {
		return sdk.Faultf(sdk.CodeRefused, "the task was stopped")
	}
	c.clients[instance] = cl
	return nil
}

// checked compares versions, notes what the plugin is, and runs its Check.
func (c *connectors) checked(ctx context.Context, check func(context.Context) ([]sdk.Finding, error), p *Plugin, m *manifest.Manifest, role manifest.Role,
	conn config.Connector, instance string, secrets config.Resolved,
) error {
	if v := conn.Plugin.Version; v != "" && v != m.Version {
		return sdk.Faultf(sdk.CodeInvalidConfig, "plugin %s is version %s, the task asks for %s", p.Name, m.Version, v)
	}
	c.facets[instance], c.levels[instance] = m.Roles[role], m.Roles[role].Level
	findings, err := check(ctx)
	if err != nil {
		return err
	}
	for _, f := range findings {
		f.Message, f.Advice = secrets.Conceal(f.Message), secrets.Conceal(f.Advice)
		c.found = append(c.found, Checked{instance, p.Name + " " + m.Version, f})
		if f.Severity == sdk.Warning && !c.quiet {
			c.log.Warn("check", "instance", instance, "subject", f.Subject, "finding", f.Message, "advice", f.Advice)
		}
	}
	return nil
}

func (c *connectors) verdict() error {
	var bad []Checked
	for _, f := range c.found {
		if f.Severity == sdk.Error {
			bad = append(bad, f)
		}
	}
	if len(bad) > 0 {
		return &CheckError{bad}
	}
	return nil
}

// explain turns a start that came to nothing into what the user can mend.
func (c *connectors) explain(err error, conn config.Connector, instance string, secrets config.Resolved) error {
	var bad *supervisor.ConfigError
	if errors.As(err, &bad) {
		return conn.Config.Problems(bad.Problems, secrets)
	}
	root := rootOf(err)
	f := *sdk.AsFault(root)
	var inner *sdk.Fault
	if errors.As(root, &inner) {
		f = *inner
	}
	f.Message = fmt.Sprintf("%s (%s): %s", instance, conn.Plugin, secrets.Conceal(f.Message))
	f.Suggestion = secrets.Conceal(f.Suggestion)
	if f.Code == sdk.CodeInvalidConfig {
		return config.Problems{{Place: conn.Config.At(""), Message: f.Error()}}
	}
	return &startError{f, err}
}

// startError keeps the cause beside what the user is told.
type startError struct {
	told  sdk.Fault
	cause error
}

// Error returns what the user is told.
func (e *startError) Error() string { return e.told.Error() }

// Unwrap returns both.
func (e *startError) Unwrap() []error { return []error{&e.told, e.cause} }
