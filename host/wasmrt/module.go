package wasmrt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/wire"
)

// Module is one instance of a module in a child of its own; it is a
// pipeline.Stage. Calls come one at a time, but for Stats and Runtime.Close.
type Module struct {
	rt      *Runtime
	cfg     ModuleConfig
	log     *slog.Logger
	file    *os.File // sealed memfd
	methods map[string]wire.Method

	configured *wire.ConfigureRequest // to repeat it in the next child
	schemas    map[uint32]*layout
	order      []uint32 // of schemas
	verifier   Verifier
	request    []byte
	deaths     int // children in a row that ended before they did anything of use

	mu    sync.Mutex // guards what Stats and end look at
	child *child
	ended bool
	stats Stats
}

// layout is what the module answered about one schema.
type layout struct {
	in   []byte
	pass bool
	drop bool
	out  []byte // empty = as it came
}

// Stats are counts of one module since Open.
type Stats struct {
	PID      int // 0 = no child is running
	Starts   uint64
	Deaths   uint64
	Calls    uint64
	BytesIn  uint64        // requests
	BytesOut uint64        // replies
	CPU      time.Duration // of children that have ended
	RSS      int64         // anonymous bytes of the running child
}

// Open checks the module's bytes and makes it ready to be called. No child runs
// before the first call.
func (r *Runtime) Open(cfg ModuleConfig) (*Module, error) {
	cfg.withDefaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	f, err := memfile("datalink-wasm", cfg.Binary)
	if err != nil {
		return nil, err
	}
	cfg.size, cfg.Binary = len(cfg.Binary), nil
	m := &Module{
		rt: r, cfg: cfg, file: f, log: r.cfg.Log.With("module", cfg.Name),
		methods: map[string]wire.Method{}, schemas: map[uint32]*layout{}, verifier: Verifier{Limits: cfg.Limits},
	}
	for _, w := range wire.Methods() {
		m.methods[w.Name] = w
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		f.Close()
		return nil, errors.New("open a module: the runtime is closed")
	}
	r.modules[m] = struct{}{}
	return m, nil
}

// Describe returns the module's manifest.
func (m *Module) Describe(ctx context.Context) (*manifest.Manifest, error) {
	var reply wire.DescribeReply
	if err := m.call(ctx, wire.Describe, &wire.DescribeRequest{Protocol: sdk.ProtocolMax}, &reply); err != nil {
		return nil, err
	}
	d := new(manifest.Manifest)
	if err := json.Unmarshal(reply.Manifest, d); err != nil {
		return nil, sdk.Faultf(sdk.CodeInternal, "module %s: its manifest is no JSON of a manifest: %v", m.cfg.Name, err)
	}
	if d.ProtocolMin > sdk.ProtocolMax || d.ProtocolMax < sdk.ProtocolMin {
		return nil, sdk.Faultf(sdk.CodeUnimplemented, "module %s speaks protocol versions %d to %d, this host speaks %d to %d",
			m.cfg.Name, d.ProtocolMin, d.ProtocolMax, sdk.ProtocolMin, sdk.ProtocolMax)
	}
	if _, ok := d.Roles[manifest.Transform]; !ok {
		return nil, sdk.Faultf(sdk.CodeUnimplemented, "module %s is no transform; a module can be nothing else", m.cfg.Name)
	}
	return d, nil
}

// Configure makes the instance. Each child that follows is configured alike.
func (m *Module) Configure(ctx context.Context, req *wire.ConfigureRequest) (*wire.ConfigureReply, error) {
	if m.configured != nil {
		return nil, fmt.Errorf("configure module %s: it is configured already", m.cfg.Name)
	}
	reply := new(wire.ConfigureReply)
	if err := m.call(ctx, wire.Configure, req, reply); err != nil {
		return nil, err
	}
	reply = cloneConfigure(reply)
	if len(reply.Problems) == 0 {
		c := *req
		c.Config = slices.Clone(req.Config)
		m.configured = &c
	}
	return reply, nil
}

func cloneConfigure(r *wire.ConfigureReply) *wire.ConfigureReply {
	c := new(wire.ConfigureReply)
	if err := c.Decode(r.Append(nil)); err != nil {
		return r
	}
	return c
}

// Check asks the instance what would make it fail.
func (m *Module) Check(ctx context.Context) ([]sdk.Finding, error) {
	var reply wire.CheckReply
	err := m.call(ctx, wire.Check, &wire.CheckRequest{}, &reply)
	return reply.Findings, err
}

// Schema implements pipeline.Stage.
func (m *Module) Schema(ctx context.Context, s *batch.Schema) (*batch.Schema, error) {
	def := batch.AppendSchema(nil, s)
	l, err := m.askSchema(ctx, def)
	if err != nil {
		return nil, err
	}
	if _, known := m.schemas[s.ID]; !known {
		m.order = append(m.order, s.ID)
	}
	m.schemas[s.ID] = l
	switch {
	case l.pass:
		m.verifier.Pass(s)
		return s, nil
	case l.drop:
		m.verifier.Expect(s, nil)
		return nil, nil
	case len(l.out) == 0:
		m.verifier.Expect(s, s)
		return s.Clone(), nil // not s itself: rows change
	}
	out, err := batch.DecodeSchema(l.out)
	if err != nil {
		return nil, m.garbage("TransformSchema of "+s.Name(), err)
	}
	if out.ID != s.ID {
		return nil, m.garbage("TransformSchema of "+s.Name(), fmt.Errorf("the output has schema id %d, expected that of the input, %d", out.ID, s.ID))
	}
	m.verifier.Expect(s, out)
	return out, nil
}

func (m *Module) askSchema(ctx context.Context, def []byte) (*layout, error) {
	var reply wire.SchemaReply
	if err := m.call(ctx, wire.TransformSchema, &wire.SchemaRequest{Schema: def}, &reply); err != nil {
		return nil, err
	}
	return &layout{in: def, pass: reply.Pass, drop: reply.Drop, out: slices.Clone(reply.Schema)}, nil
}

// Apply implements pipeline.Stage. The module gets a block that defines all
// schemas it uses, so that neither it nor a new child needs earlier ones.
func (m *Module) Apply(ctx context.Context, block []byte, schemas []uint32) ([]byte, error) {
	req := wire.TransformRequest{Schemas: make([]uint64, len(schemas))}
	for i, id := range schemas {
		if m.schemas[id] == nil {
			return nil, fmt.Errorf("transform by module %s: it was not asked for the layout of schema %d", m.cfg.Name, id)
		}
		req.Schemas[i] = uint64(id)
	}
	var err error
	if req.Block, err = m.verifier.Input(block, schemas); err != nil {
		return nil, fmt.Errorf("transform by module %s: its input: %w", m.cfg.Name, err)
	}
	var reply wire.TransformReply
	if err := m.call(ctx, wire.ApplyTransform, &req, &reply); err != nil {
		return nil, err
	}
	if err := m.verifier.Output(reply.Block); err != nil {
		return nil, m.garbage("Transform", err)
	}
	return slices.Clone(reply.Block), nil
}

// garbage ends the child, whose memory nobody can trust now, and says why.
func (m *Module) garbage(what string, err error) error {
	m.bury()
	return sdk.Faultf(sdk.CodeInternal, "module %s returned what cannot be used from %s: %v", m.cfg.Name, what, err).
		Suggest("the module has a fault: report it to its author, or take it out of the task")
}

// Close ends the instance. It is idempotent.
func (m *Module) Close(ctx context.Context) error {
	m.mu.Lock()
	running := m.child != nil && !m.ended
	m.mu.Unlock()
	var err error
	if running && m.configured != nil {
		err = m.try(ctx, m.methods[wire.Close], &wire.Empty{}, &wire.Empty{})
		var d *death
		if errors.As(err, &d) {
			err = nil // it is ended, which is what was asked for
		}
	}
	m.end()
	return err
}

// end kills the child and gives the module back.
func (m *Module) end() {
	m.mu.Lock()
	c, ended := m.child, m.ended
	m.child, m.ended = nil, true
	m.mu.Unlock()
	if c != nil {
		c.kill()
	}
	if ended {
		return
	}
	m.file.Close()
	m.rt.mu.Lock()
	delete(m.rt.modules, m)
	m.rt.mu.Unlock()
}

// Stats returns what the module did so far. It is safe for concurrent use.
func (m *Module) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stats
	if m.child != nil {
		s.PID = m.child.cmd.Process.Pid
		s.RSS = rss(s.PID)
	}
	return s
}

// said logs a line of the module.
func (m *Module) said(level slog.Level, line []byte) {
	m.log.Log(context.Background(), level, "module says", "text", strings.ToValidUTF8(string(line), "�"))
}

// call makes a call, in another child when one dies of it.
func (m *Module) call(ctx context.Context, method string, req, reply wire.Message) error {
	w := m.methods[method]
	for n := 1; ; n++ {
		err := m.try(ctx, w, req, reply)
		var d *death
		if !errors.As(err, &d) {
			return err
		}
		m.bury()
		m.deaths++
		m.log.Warn("the module's child died", "during", method, "cause", d.cause, "attempt", n, "of", m.cfg.Deaths)
		if n >= m.cfg.Deaths {
			return m.verdict(method, n, d)
		}
		if err := m.pause(ctx); err != nil {
			return err
		}
	}
}

// verdict is the error of a call that killed as many children as it may.
func (m *Module) verdict(method string, n int, d *death) error {
	code := sdk.CodeInternal
	if method == wire.ApplyTransform {
		code = sdk.CodePoison
	}
	return sdk.Faultf(code, "module %s died %d times in a row of %s; at last: %s", m.cfg.Name, n, method, d.cause).
		Suggest("the module has a fault or its limits are too small: report it to its author, raise memory or time, or take it out of the task")
}

// pause waits before the next child, longer with each that died in a row.
func (m *Module) pause(ctx context.Context) error {
	d := m.cfg.BackOff << min(m.deaths-1, 6)
	d = min(d, 100*m.cfg.BackOff)
	d = d/2 + rand.N(d/2+1)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// try makes one call in the child there is, or in a new one.
func (m *Module) try(ctx context.Context, method wire.Method, req, reply wire.Message) error {
	c, err := m.running(ctx, method.Name != wire.Describe && method.Name != wire.Configure)
	if err != nil {
		return err
	}
	err = m.ask(ctx, c, method, req, reply)
	if err == nil {
		m.deaths = 0
	}
	return err
}

func (m *Module) ask(ctx context.Context, c *child, method wire.Method, req, reply wire.Message) error {
	m.request = req.Append(m.request[:0])
	data, err := c.call(ctx, method, m.request, m.cfg.CallTimeout, m)
	m.mu.Lock()
	m.stats.Calls++
	m.stats.BytesIn, m.stats.BytesOut = m.stats.BytesIn+uint64(len(m.request)), m.stats.BytesOut+uint64(len(data))
	m.mu.Unlock()
	if err != nil {
		if !alive(c) {
			m.bury()
		}
		return err
	}
	err = wire.DecodeReply(data, reply)
	if errors.Is(err, wire.ErrCorrupt) {
		return m.garbage(method.Name, err)
	}
	var f *sdk.Fault
	if errors.As(err, &f) {
		c := *f
		c.Message = fmt.Sprintf("module %s: %s", m.cfg.Name, f.Message)
		return &c
	}
	return err
}

func alive(c *child) bool {
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

// bury forgets the child and counts it.
func (m *Module) bury() {
	m.mu.Lock()
	c := m.child
	m.child = nil
	m.mu.Unlock()
	if c == nil {
		return
	}
	c.kill()
	m.mu.Lock()
	m.stats.Deaths++
	if s := c.cmd.ProcessState; s != nil {
		m.stats.CPU += s.UserTime() + s.SystemTime()
	}
	m.mu.Unlock()
}

// running returns the child, started and brought to where the last one was.
func (m *Module) running(ctx context.Context, configured bool) (*child, error) {
	m.mu.Lock()
	c, ended := m.child, m.ended
	failPoint := ""
	if m.stats.Starts == 0 {
		failPoint = m.cfg.FailPoint
	}
	m.mu.Unlock()
	if ended {
		return nil, fmt.Errorf("call module %s: it is closed", m.cfg.Name)
	}
	if c != nil {
		return c, nil
	}
	c, err := m.rt.spawn(ctx, m, failPoint)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	if m.ended {
		m.mu.Unlock()
		c.kill()
		return nil, fmt.Errorf("call module %s: it is closed", m.cfg.Name)
	}
	m.child = c
	m.stats.Starts++
	m.mu.Unlock()
	if err := m.prepare(ctx, c, configured); err != nil {
		m.bury()
		return nil, err
	}
	return c, nil
}

// prepare brings a new child to the state of the one before it.
func (m *Module) prepare(ctx context.Context, c *child, configured bool) error {
	h := &hello{
		Name: m.cfg.Name, SHA256: m.cfg.SHA256, Pages: m.cfg.MemoryMB * 16,
		Data: m.cfg.data(), Message: m.cfg.message(),
	}
	if m.rt.cfg.CacheDir != "" {
		h.CacheDir = m.rt.cfg.CacheDir + "/" + m.cfg.SHA256
		if err := cacheDir(h.CacheDir); err != nil {
			return err
		}
	}
	if err := c.hello(ctx, h, m.cfg.StartTimeout, m); err != nil {
		return err
	}
	if m.configured == nil || !configured {
		return nil
	}
	var reply wire.ConfigureReply
	if err := m.ask(ctx, c, m.methods[wire.Configure], m.configured, &reply); err != nil {
		return err
	}
	if len(reply.Problems) > 0 {
		return sdk.Faultf(sdk.CodeInternal, "module %s refuses, after a restart, the configuration that it took before: %s", m.cfg.Name, reply.Problems[0].Message)
	}
	for _, id := range m.order {
		l := m.schemas[id]
		var reply wire.SchemaReply
		if err := m.ask(ctx, c, m.methods[wire.TransformSchema], &wire.SchemaRequest{Schema: l.in}, &reply); err != nil {
			return err
		}
		if reply.Pass != l.pass || reply.Drop != l.drop || !slices.Equal(reply.Schema, l.out) {
			return sdk.Faultf(sdk.CodeInternal, "module %s gives, after a restart, another layout for schema %d than before: its calls are not pure", m.cfg.Name, id)
		}
	}
	return nil
}
