package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/datalink-go/datalink/host/config"
	"github.com/datalink-go/datalink/host/mapping"
	"github.com/datalink-go/datalink/host/null"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/host/supervisor"
	"github.com/datalink-go/datalink/host/wasmrt"
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/manifest"
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
	shadow   *shadow // nil = dead letters are not copied
	faults
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
	c.pipe = pipeline.Config{Log: c.log, Execution: c.ex, NoSkip: noSkip(), Window: window(), Beside: pipeline.NewBeside()}
	c.pipe.Beside.Stale = switched("verify-stale")
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
	c.mu.Lock()
	prompt := has(c.facets[reader], manifest.WantsDurable)
	c.mu.Unlock()
	c.pipe.Reader = pipeline.ReaderConfig{Source: src, Prompt: prompt, Reopen: func(ctx context.Context) (pipeline.Source, error) { return c.reader.Ready(ctx) }}
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
		if c.s.shadow != nil {
			c.s.shadow.flush()
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
