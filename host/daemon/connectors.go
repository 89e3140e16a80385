package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/datalink-go/datalink/host/config"
	"github.com/datalink-go/datalink/host/mapping"
	"github.com/datalink-go/datalink/host/null"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/host/supervisor"
	"github.com/datalink-go/datalink/host/wasmrt"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/wire"
)

// reader is the name of the reader's instance in a task.
const reader = "reader"

// starter makes the connectors of tasks. It is shared by all tasks of a node.
type starter struct {
	plugins  Plugins
	launcher *supervisor.Launcher
	modules  *wasmrt.Runtime
	metrics  *supervisor.Metrics
	sources  config.Sources
	lock     *os.File // of the data directory; plugins inherit it
	dir      string   // working directory of plugins
	sockets  string
	log      *slog.Logger
	level    string
	shadow   *shadow  // nil = dead letters are not copied
	armed    sync.Map // instances that were given their fail points
}

// connectors are those of one task while they live.
type connectors struct {
	s    *starter
	task *config.Task
	ex   sdk.Execution
	log  *slog.Logger

	reader  *supervisor.Plugin
	writers []*supervisor.Plugin
	stages  []*supervisor.Plugin
	modules []*wasmrt.Module
	images  []*supervisor.Image
	pipe    pipeline.Config
	levels  map[string]manifest.Level
	facets  map[string]manifest.Facet
	found   []Checked
	quiet   bool // check everything, and let nothing but configuration be an error

	mu      sync.Mutex
	clients map[string]*supervisor.Client // running, by instance
	killed  bool
	once    sync.Once
}

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

// start starts, configures and checks all connectors of a task. On an error
// nothing of them lives.
func (s *starter) start(ctx context.Context, t *config.Task, ex sdk.Execution, quiet bool) (*connectors, error) {
	c := &connectors{
		s: s, task: t, ex: ex, quiet: quiet, log: s.log.With("task", t.Name),
		levels: map[string]manifest.Level{}, facets: map[string]manifest.Facet{}, clients: map[string]*supervisor.Client{},
	}
	err := c.startAll(ctx)
	if err == nil && !quiet {
		err = c.verdict()
	}
	if err != nil {
		c.Kill()
		return nil, err
	}
	return c, nil
}

func (c *connectors) startAll(ctx context.Context) error {
	t := c.task
	c.pipe = pipeline.Config{Log: c.log, Execution: c.ex, NoSkip: noSkip(), Window: window()}
	var problems config.Problems
	add := func(err error) error {
		var p config.Problems
		if errors.As(err, &p) {
			problems = append(problems, p...)
			return nil
		}
		return err
	}
	r, err := c.process(ctx, t.Reader, manifest.Reader, reader)
	if err := add(err); err != nil {
		return err
	}
	c.reader = r
	for i := range t.Transforms {
		st, err := c.transform(ctx, &t.Transforms[i])
		if err := add(err); err != nil {
			return err
		}
		c.pipe.Stages = append(c.pipe.Stages, st)
	}
	for i := range t.Writers {
		if isNull(t.Writers[i].Plugin) {
			c.writers = append(c.writers, nil)
			problems = append(problems, nullOptions(t.Writers[i].Config)...)
			continue
		}
		w, err := c.process(ctx, t.Writers[i].Connector, manifest.Writer, t.Writers[i].Name)
		if err := add(err); err != nil {
			return err
		}
		c.writers = append(c.writers, w)
	}
	if len(problems) > 0 {
		return problems
	}
	return c.wire(ctx)
}

// wire fills in the pipeline's configuration once all connectors are there.
func (c *connectors) wire(ctx context.Context) error {
	src, err := c.reader.Ready(ctx)
	if err != nil {
		return err
	}
	c.pipe.Reader = pipeline.ReaderConfig{Source: src, Reopen: func(ctx context.Context) (pipeline.Source, error) { return c.reader.Ready(ctx) }}
	for i := range c.task.Writers {
		w, plugin := &c.task.Writers[i], c.writers[i]
		if plugin == nil {
			wc, err := c.nullWriter(w)
			if err != nil {
				return err
			}
			c.pipe.Writers = append(c.pipe.Writers, wc)
			continue
		}
		sink, err := plugin.Ready(ctx)
		if err != nil {
			return err
		}
		f := c.facets[w.Name]
		wc := pipeline.WriterConfig{
			Name: w.Name, Sink: c.sink(sink, f), Stores: has(f, manifest.CanPositions),
			Reopen: func(ctx context.Context) (pipeline.Sink, error) {
				again, err := plugin.Ready(ctx)
				if err != nil {
					return nil, err
				}
				return c.sink(again, f), nil
			},
			Versioned: f.Level == manifest.LevelVersioned, Leased: f.Level == manifest.LevelIdempotent,
		}
		if w.DeadLetter {
			wc.OnError = pipeline.DeadLetterOnError
		}
		if naming := c.task.Naming(has(f, manifest.FlatNames)); naming != mapping.SameNames || len(w.Mappings) > 0 {
			st, err := mapping.New(w.Mappings, naming)
			if err != nil {
				return fmt.Errorf("mappings of writer %s: %w", w.Name, err)
			}
			wc.Stages = []pipeline.Stage{st}
		}
		c.pipe.Writers = append(c.pipe.Writers, wc)
	}
	return nil
}

// nullWriter is the built-in writer that decodes and sums up every value and keeps
// nothing.
func (c *connectors) nullWriter(w *config.Writer) (pipeline.WriterConfig, error) {
	c.levels[w.Name] = manifest.LevelIdempotent
	wc := pipeline.WriterConfig{Name: w.Name, Sink: new(null.Sink)}
	if len(w.Mappings) == 0 {
		return wc, nil
	}
	st, err := mapping.New(w.Mappings, mapping.SameNames)
	if err != nil {
		return wc, fmt.Errorf("mappings of writer %s: %w", w.Name, err)
	}
	wc.Stages = []pipeline.Stage{st}
	return wc, nil
}

func nullOptions(b config.Block) config.Problems {
	if b.Empty() {
		return nil
	}
	return config.Problems{{Place: b.At(""), Message: "the built-in writer null has no options", Found: string(b.JSON()), Expected: "no config"}}
}

// sink adds the copying of dead letters where the target has them.
func (c *connectors) sink(cl *supervisor.Client, f manifest.Facet) pipeline.Sink {
	if c.s.shadow == nil || !has(f, manifest.CanPositions) {
		return cl
	}
	return shadowed{cl, c.s.shadow}
}

func has(f manifest.Facet, capability string) bool {
	for _, c := range f.Capabilities {
		if c == capability {
			return true
		}
	}
	return false
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
		func(ctx context.Context, cl *supervisor.Client, _ *wire.ConfigureReply) error {
			if first {
				if err := c.checked(ctx, cl.Check, p, cl.Manifest(), role, conn, instance, secrets); err != nil {
					return err
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
	return &startError{f, root}
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

// transform makes the stage of one transform.
func (c *connectors) transform(ctx context.Context, t *config.Transform) (pipeline.Stage, error) {
	if t.Rules != nil {
		return mapping.New(t.Rules, mapping.SameNames)
	}
	p, err := c.s.plugins.Find(t.Plugin)
	if err != nil {
		return nil, config.Problems{t.Plugin.Problem(t.Name, err.Error(), "an installed plugin")}
	}
	if p.Kind == "process" {
		sup, err := c.process(ctx, t.Connector, manifest.Transform, t.Name)
		if err != nil {
			return nil, err
		}
		c.stages = append(c.stages, sup)
		return scoped{&revived{plugin: sup, name: t.Name}, t.Tables}, nil
	}
	m, err := c.module(ctx, t, p)
	if err != nil {
		return nil, err
	}
	return scoped{m, t.Tables}, nil
}

// module starts a transform that is a WASM module.
func (c *connectors) module(ctx context.Context, t *config.Transform, p *Plugin) (*wasmrt.Module, error) {
	secrets, err := t.Config.Resolve(c.s.sources)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(p.Path)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", p.Name, err)
	}
	cfg := wasmrt.ModuleConfig{Name: c.task.Name + "/" + t.Name, Binary: data, SHA256: p.SHA256, FailPoint: strings.Join(c.s.failPoints(t.Name), ",")}
	if p.Claim != nil {
		cfg.MemoryMB = p.Claim.Grants.MemoryMB
	}
	m, err := c.s.modules.Open(cfg)
	if err != nil {
		return nil, err
	}
	c.modules = append(c.modules, m)
	desc, err := m.Describe(ctx)
	if err != nil {
		return nil, c.explain(err, t.Connector, t.Name, secrets)
	}
	a, err := m.Configure(ctx, &wire.ConfigureRequest{
		Role: string(manifest.Transform), Task: c.task.Name, Name: t.Name, Config: secrets.JSON(), LogLevel: c.s.level,
	})
	if err != nil {
		return nil, c.explain(err, t.Connector, t.Name, secrets)
	}
	if len(a.Problems) > 0 {
		return nil, t.Config.Problems(a.Problems, secrets)
	}
	return m, c.checked(ctx, m.Check, p, desc, manifest.Transform, t.Connector, t.Name, secrets)
}

// Pipeline returns reader, stages and writers with their options.
func (c *connectors) Pipeline() pipeline.Config { return c.pipe }

// Level returns what a writer's plugin promises.
func (c *connectors) Level(writer string) manifest.Level { return c.levels[writer] }

// Close ends the connectors in good order: the reader first.
func (c *connectors) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.end()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		c.Kill()
		<-done
		return ctx.Err()
	}
}

func (c *connectors) end() {
	c.once.Do(func() {
		var all sync.WaitGroup
		for _, p := range append(append([]*supervisor.Plugin{c.reader}, c.writers...), c.stages...) {
			if p != nil {
				all.Go(p.Close)
			}
		}
		for _, m := range c.modules {
			all.Go(func() { _ = m.Close(context.Background()) })
		}
		all.Wait()
		for _, i := range c.images {
			_ = i.Close()
		}
	})
}

// Kill ends the process groups at once and returns when they are gone.
func (c *connectors) Kill() {
	c.mu.Lock()
	c.killed = true
	var all sync.WaitGroup
	for _, cl := range c.clients {
		all.Go(cl.Kill)
	}
	c.mu.Unlock()
	all.Wait()
	c.end()
}
