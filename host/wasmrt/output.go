//go:build linux

package wasmrt

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"math"
	"strconv"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// output is what a module says beside its replies. It goes to the host in
// frames, so many for each call; the rest is counted.
type output struct {
	w        io.Writer
	lines    int
	metrics  int
	dropped  int
	partial  []byte // unfinished line of standard output or error
	lastText []byte // of standard error, for messages
	err      error
}

// begin starts the account of one call.
func (o *output) begin() {
	o.end()
	o.lines, o.metrics, o.dropped = 0, 0, 0
	o.lastText = o.lastText[:0]
}

// end reports what was dropped in the call.
func (o *output) end() {
	if len(o.partial) > 0 {
		o.line(slog.LevelWarn, o.partial)
		o.partial = o.partial[:0]
	}
	if o.dropped > 0 {
		n := o.dropped
		o.dropped, o.lines = 0, 0
		o.line(slog.LevelWarn, []byte("the module said more than is passed on in one call; dropped: "+strconv.Itoa(n)))
	}
}

func (o *output) line(level slog.Level, p []byte) {
	if o.lines >= maxLines {
		o.dropped++
		return
	}
	o.lines++
	o.send(frameLog, binary.LittleEndian.AppendUint32(nil, uint32(int32(level))), p[:min(len(p), maxLine)])
}

func (o *output) send(kind uint32, parts ...[]byte) {
	if err := writeFrame(o.w, kind, parts...); err != nil && o.err == nil {
		o.err = err
	}
}

// text returns a writer for what the module prints.
func (o *output) text() io.Writer { return (*printed)(o) }

type printed output

func (p *printed) Write(b []byte) (int, error) {
	o := (*output)(p)
	o.lastText = append(o.lastText, b...)
	if n := len(o.lastText); n > maxLine {
		o.lastText = append(o.lastText[:0], o.lastText[n-maxLine:]...)
	}
	o.partial = append(o.partial, b...)
	for {
		i := bytes.IndexByte(o.partial, '\n')
		if i < 0 && len(o.partial) < maxLine {
			return len(b), nil
		}
		if i < 0 {
			i = len(o.partial) - 1
		}
		o.line(slog.LevelWarn, o.partial[:i])
		o.partial = append(o.partial[:0], o.partial[i+1:]...)
	}
}

// tail returns the first and most telling line that was printed in this call.
func (o *output) tail() string {
	t := bytes.TrimSpace(o.lastText)
	if i := bytes.IndexByte(t, '\n'); i >= 0 {
		t = t[:i]
	}
	return string(t[:min(len(t), 300)])
}

// offered are the functions that a module may import.
var offered = []string{"log", "clock", "metric"}

// hostModule makes the functions that modules import from "datalink". A pointer
// outside of the module's memory is a trap.
func hostModule(ctx context.Context, rt wazero.Runtime, o *output) error {
	i32, i64, f64 := api.ValueTypeI32, api.ValueTypeI64, api.ValueTypeF64
	view := func(m api.Module, ptr, n uint64) []byte {
		p, ok := m.Memory().Read(uint32(ptr), uint32(n))
		if !ok {
			panic("the module handed a pointer outside of its memory to the host")
		}
		return p[:min(len(p), maxLine)]
	}
	b := rt.NewHostModuleBuilder(hostName)
	b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, s []uint64) {
		o.line(slog.Level(int32(s[0])), view(m, s[1], s[2]))
	}), []api.ValueType{i32, i32, i32}, nil).Export("log")
	b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, _ api.Module, s []uint64) {
		s[0] = uint64(time.Now().UnixMicro())
	}), nil, []api.ValueType{i64}).Export("clock")
	b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, s []uint64) {
		name := view(m, s[1], s[2])
		if o.metrics++; o.metrics > maxMetrics || !metricName(name) || math.IsNaN(math.Float64frombits(s[3])) {
			o.dropped++
			return
		}
		head := binary.LittleEndian.AppendUint32(nil, uint32(s[0]))
		o.send(frameMetric, binary.LittleEndian.AppendUint64(head, s[3]), name)
	}), []api.ValueType{i32, i32, i32, f64}, nil).Export("metric")
	_, err := b.Instantiate(ctx)
	return err
}

// metricName reports whether the name is one that is exported as it is.
func metricName(p []byte) bool {
	for i, c := range p {
		if (c < 'a' || c > 'z') && c != '_' && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return len(p) > 0 && len(p) <= 64
}
