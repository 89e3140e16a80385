package wasmrt

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
	"github.com/datalink-go/datalink/sdk/wire"
)

func wat(tb testing.TB, name string) []byte { return file(tb, "testdata/wat/"+name+".wasm") }

// neighbour is another task: it goes on transforming until stop, which says
// whether it did so undisturbed, in the one child that it began with.
func neighbour(t *testing.T, r *Runtime) (stop func()) {
	t.Helper()
	s, o := customers(1), orders(2)
	m := open(t, r, "neighbour", maskRust(t), nil)
	configure(t, m, maskConfig, s, o)
	in := sample(t, s, o, 20)
	want := string(newNative(t, maskConfig, s, o).apply(t, in, 1))
	done := make(chan struct{})
	var (
		wg   sync.WaitGroup
		runs int
		err  error
	)
	wg.Go(func() {
		for {
			var got []byte
			if got, err = m.Apply(context.Background(), in, []uint32{1}); err == nil && string(got) != want {
				err = errors.New("another result")
			}
			if err != nil {
				return
			}
			runs++
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	return func() {
		t.Helper()
		close(done)
		wg.Wait()
		if st := m.Stats(); err != nil || st.Starts != 1 || runs == 0 {
			t.Errorf("the other task was disturbed: %v, %d runs, %d children", err, runs, st.Starts)
		}
	}
}

// transform runs a module of testdata/wat up to its Transform.
func transform(t *testing.T, r *Runtime, name string, binary []byte, change func(*ModuleConfig)) (*Module, error) {
	t.Helper()
	m := open(t, r, name, binary, change)
	s, o := customers(1), orders(2)
	if _, err := m.Configure(t.Context(), &wire.ConfigureRequest{Role: "transform"}); err != nil {
		return m, err
	}
	for _, s := range []*batch.Schema{s, o} {
		if _, err := m.Schema(t.Context(), s); err != nil {
			return m, err
		}
	}
	_, err := m.Apply(t.Context(), sample(t, s, o, 20), []uint32{1})
	return m, err
}

func TestHostileModules(t *testing.T) {
	r := newRuntime(t)
	stop := neighbour(t, r)
	defer stop()
	for _, c := range []struct {
		name   string
		code   sdk.Code
		wants  []string
		deaths uint64
	}{
		{"loop", sdk.CodePoison, []string{"module loop died 2 times", "Transform took longer than 300ms"}, 2},
		{"initloop", sdk.CodeInternal, []string{"module initloop died 2 times", "starting it took longer than 2s"}, 2},
		{"bomb", sdk.CodePoison, []string{"module bomb died 2 times", "unreachable"}, 2},
		{"tablebomb", sdk.CodePoison, []string{"module tablebomb died 2 times"}, 2},
		{"trap", sdk.CodePoison, []string{"module trap died 2 times", "unreachable", "deep"}, 2},
		{"badalloc", sdk.CodeInternal, []string{"alloc(", "0x7fffffff", "not within its memory"}, 2},
		{"badlog", sdk.CodePoison, []string{"pointer outside of its memory"}, 2},
		{"chatter", sdk.CodePoison, []string{"took longer than 300ms"}, 2},
		{"exit", sdk.CodePoison, []string{"exited with code 7"}, 2},
		{"nomarker", sdk.CodeUnimplemented, []string{"no DataLink module", "datalink_abi_1"}, 1},
		{"version2", sdk.CodeUnimplemented, []string{"speaks ABI version 2", "speaks 1"}, 1},
		{"nocall", sdk.CodeUnimplemented, []string{"lacks the export call"}, 1},
		{"nomemory", sdk.CodeUnimplemented, []string{"lacks the export memory"}, 1},
		{"badtype", sdk.CodeUnimplemented, []string{"export alloc has the type (i64) -> (i64), expected (i32) -> (i32)"}, 1},
		{"wantshttp", sdk.CodeRefused, []string{"imports datalink.http", "grant"}, 1},
		{"wantsenv", sdk.CodeUnimplemented, []string{"imports env.puts"}, 1},
		{"greedy", sdk.CodeUnimplemented, []string{"64 MB"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "tablebomb" && raceDetector {
				t.Skip("the limit of allocations is off")
			}
			m, err := transform(t, r, c.name, wat(t, c.name), func(cfg *ModuleConfig) {
				cfg.MemoryMB, cfg.Deaths, cfg.CallTimeout = 64, 2, 300*time.Millisecond
				switch c.name {
				case "initloop":
					cfg.StartTimeout = 2 * time.Second
				case "bomb", "tablebomb":
					cfg.CallTimeout = 20 * time.Second
				}
			})
			wantFault(t, err, c.code, c.wants...)
			if st := m.Stats(); st.Deaths != c.deaths || st.PID != 0 {
				t.Errorf("%d children died, child %d runs; want %d deaths and none running", st.Deaths, st.PID, c.deaths)
			}
		})
	}
	t.Run("no wasm", func(t *testing.T) {
		_, err := transform(t, r, "text", []byte("no module at all"), nil)
		wantFault(t, err, sdk.CodeUnimplemented, "not valid WebAssembly")
	})
	t.Run("digest", func(t *testing.T) {
		_, err := r.Open(ModuleConfig{Name: "other", Binary: wat(t, "trap"), SHA256: digest(nil)})
		wantFault(t, err, sdk.CodeRefused, "SHA-256", digest(nil))
	})
}

func wantFault(t *testing.T, err error, code sdk.Code, texts ...string) {
	t.Helper()
	var f *sdk.Fault
	if !errors.As(err, &f) {
		t.Fatalf("got error %v, want a fault with code %s", err, code)
	}
	if f.Code != code {
		t.Errorf("code %s, want %s: %v", f.Code, code, err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q, want %q in it", err, text)
		}
	}
}

// A module that talks without end is passed on for so many lines only.
func TestChatterIsBounded(t *testing.T) {
	metrics := 0
	_, err := transform(t, newRuntime(t), "chatter", wat(t, "chatter"), func(cfg *ModuleConfig) {
		cfg.Deaths, cfg.CallTimeout = 1, 200*time.Millisecond
		cfg.Metric = func(name string, _ bool, v float64) {
			if name != "la" || v != 1 {
				t.Errorf("metric %q %v", name, v)
			}
			metrics++
		}
	})
	if err == nil || metrics != maxMetrics {
		t.Errorf("error %v, %d metrics passed on, want an error and %d", err, metrics, maxMetrics)
	}
}

// withReply gives the module reply.wat what it answers to Transform: the bytes
// at an address, or a length and an address of their own.
func withReply(tb testing.TB, reply []byte, packed uint64) []byte {
	tb.Helper()
	uleb := binary.AppendUvarint
	segment := func(dst []byte, at int, p []byte) []byte {
		dst = append(dst, 0, 0x41) // active, i32.const
		for v := at; ; v >>= 7 {
			if v < 0x40 {
				dst = append(dst, byte(v))
				break
			}
			dst = append(dst, byte(v&0x7f)|0x80)
		}
		dst = append(dst, 0x0b)
		return append(uleb(dst, uint64(len(p))), p...)
	}
	const at = 1 << 16
	if packed == 0 {
		packed = at<<32 | uint64(len(reply))
	}
	body := append([]byte(nil), 2)
	body = segment(body, 16, binary.LittleEndian.AppendUint64(nil, packed))
	body = segment(body, at, reply)
	m := append(append([]byte(nil), wat(tb, "reply")...), 11)
	return append(uleb(m, uint64(len(body))), body...)
}

func transformReply(block []byte) []byte {
	return wire.AppendReply(nil, &wire.TransformReply{Block: block}, nil)
}

func TestGarbageResults(t *testing.T) {
	r := newRuntime(t)
	stop := neighbour(t, r)
	defer stop()
	s, o := customers(1), orders(2)
	good := newNative(t, maskConfig, s, o).apply(t, sample(t, s, o, 20), 1)
	for _, c := range []struct {
		name   string
		reply  []byte
		packed uint64
		want   string
		dies   bool
	}{
		{name: "good", reply: transformReply(good)},
		{name: "outside of memory", packed: 0xffffff00<<32 | 4096, want: "not within its memory", dies: true},
		{name: "over the end", packed: (256<<16-8)<<32 | 16, want: "not within its memory", dies: true},
		{name: "oversize", packed: 9 << 20, want: "the limit is", dies: true},
		{name: "empty", packed: 1 << 32, want: "status byte"},
		{name: "unknown status", reply: []byte{7}, want: "status byte 7"},
		{name: "no message", reply: []byte{0, 0xff, 0xff}, want: "TransformReply"},
		{name: "no block", reply: []byte{0}, want: "header"},
		{name: "cut block", reply: transformReply(good[:len(good)-1]), want: "the header says"},
		{name: "other block", reply: transformReply(sample(t, s, o, 21)), want: "changed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := transform(t, r, "reply", withReply(t, c.reply, c.packed), func(cfg *ModuleConfig) { cfg.Deaths = 2 })
			switch {
			case c.want == "" && err != nil:
				t.Errorf("a good reply is refused: %v", err)
			case c.want != "" && c.dies:
				wantFault(t, err, sdk.CodePoison, c.want)
			case c.want != "":
				wantFault(t, err, sdk.CodeInternal, c.want, "module reply")
			}
		})
	}
	t.Run("fault", func(t *testing.T) {
		reply := wire.AppendReply(nil, nil, sdk.Faultf(sdk.CodeUnfit, "row 3 does not fit"))
		_, err := transform(t, r, "reply", withReply(t, reply, 0), nil)
		wantFault(t, err, sdk.CodeUnfit, "module reply: row 3 does not fit")
	})
}
