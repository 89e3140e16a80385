//go:build linux

package wasmrt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/datalink-go/datalink/sdk"
)

// abi is the version of the ABI that this host speaks.
const (
	abi       = "datalink_abi_1"
	abiPrefix = "datalink_abi_"
	hostName  = "datalink"
)

// guest is one instance of a module.
type guest struct {
	name  string
	limit int // bytes of a reply
	alloc api.Function
	call  api.Function
	mem   api.Memory
	out   *output
	stack [4]uint64
}

// load compiles and instantiates the module. A Fault says that it is not what
// can be run; other errors are the host's.
func load(ctx context.Context, h *hello, binary []byte, out *output) (*guest, error) {
	cfg := wazero.NewRuntimeConfig().WithMemoryLimitPages(h.Pages)
	if h.CacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(h.CacheDir)
		if err != nil {
			return nil, fmt.Errorf("open the compile cache: %w", err)
		}
		cfg = cfg.WithCompilationCache(cache)
	}
	rt := wazero.NewRuntimeWithConfig(ctx, cfg)
	code, err := rt.CompileModule(ctx, binary)
	if err != nil {
		return nil, sdk.Faultf(sdk.CodeUnimplemented, "module %s is not valid WebAssembly, or needs more than %d MB of memory: %v", h.Name, h.Pages/16, err)
	}
	if err := checkABI(h.Name, code); err != nil {
		return nil, err
	}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, rt); err != nil {
		return nil, err
	}
	if err := hostModule(ctx, rt, out); err != nil {
		return nil, err
	}
	// No files, arguments or variables; clocks are real, since a Go module's
	// scheduler spins on a clock that stands still. Random numbers are wazero's
	// fixed sequence: the same input gives the same output.
	mc := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize").
		WithSysWalltime().WithSysNanotime().WithSysNanosleep().
		WithStdout(out.text()).WithStderr(out.text())
	inst, err := rt.InstantiateModule(ctx, code, mc)
	if err != nil {
		return nil, sdk.Faultf(sdk.CodeInternal, "module %s, while it was initialised: %s", h.Name, trapText(err, out))
	}
	return &guest{
		name: h.Name, limit: h.Message, out: out, mem: inst.Memory(),
		alloc: inst.ExportedFunction("alloc"), call: inst.ExportedFunction("call"),
	}, nil
}

// signatures of the exports; all results and parameters are integers.
var exports = []struct {
	name            string
	params, results []api.ValueType
}{
	{abi, nil, nil},
	{"alloc", []api.ValueType{api.ValueTypeI32}, []api.ValueType{api.ValueTypeI32}},
	{"call", []api.ValueType{api.ValueTypeI32, api.ValueTypeI32, api.ValueTypeI32}, []api.ValueType{api.ValueTypeI64}},
}

// reserved are host functions that modules will get by grants; here they are
// denied by name, so that the author learns what is missing.
var reserved = []string{"secret", "state_get", "state_set", "http", "tcp_dial", "tcp_read", "tcp_write", "poll"}

// checkABI says what a module lacks or asks for beyond the ABI.
func checkABI(name string, code wazero.CompiledModule) error {
	funcs := code.ExportedFunctions()
	if funcs[abi] == nil {
		for f := range funcs {
			if v, ok := strings.CutPrefix(f, abiPrefix); ok {
				return sdk.Faultf(sdk.CodeUnimplemented, "module %s speaks ABI version %s, this host speaks 1", name, v).
					Suggest("install a version of the plugin that was built for this host")
			}
		}
		return sdk.Faultf(sdk.CodeUnimplemented, "module %s is no DataLink module: it does not export %s", name, abi).
			Suggest("see sdk/wasm/ABI.md")
	}
	for _, e := range exports {
		f := funcs[e.name]
		if f == nil {
			return sdk.Faultf(sdk.CodeUnimplemented, "module %s lacks the export %s", name, e.name).Suggest("see sdk/wasm/ABI.md")
		}
		if !slices.Equal(f.ParamTypes(), e.params) || !slices.Equal(f.ResultTypes(), e.results) {
			return sdk.Faultf(sdk.CodeUnimplemented, "module %s: export %s has the type %s, expected %s",
				name, e.name, signature(f.ParamTypes(), f.ResultTypes()), signature(e.params, e.results))
		}
	}
	if code.ExportedMemories()["memory"] == nil {
		return sdk.Faultf(sdk.CodeUnimplemented, "module %s lacks the export memory", name).Suggest("see sdk/wasm/ABI.md")
	}
	for _, f := range code.ImportedFunctions() {
		from, what, _ := f.Import()
		switch {
		case from == wasi_snapshot_preview1.ModuleName:
		case from == hostName && slices.Contains(reserved, what):
			return sdk.Faultf(sdk.CodeRefused, "module %s imports %s.%s, which needs a grant; a transform is granted none", name, from, what).
				Suggest("use a plugin that runs as a process")
		case from == hostName && slices.Contains(offered, what):
		default:
			return sdk.Faultf(sdk.CodeUnimplemented, "module %s imports %s.%s, which this host does not have", name, from, what).
				Suggest("see sdk/wasm/ABI.md for the functions there are")
		}
	}
	return nil
}

func signature(params, results []api.ValueType) string {
	names := func(ts []api.ValueType) string {
		s := make([]string, len(ts))
		for i, t := range ts {
			s[i] = api.ValueTypeName(t)
		}
		return strings.Join(s, ", ")
	}
	return "(" + names(params) + ") -> (" + names(results) + ")"
}

// room asks the module for room for a request and returns it as a view of the
// module's memory, valid until the module runs again.
func (g *guest) room(ctx context.Context, n int) (ptr uint32, view []byte, err error) {
	g.stack[0] = uint64(n)
	if err := g.alloc.CallWithStack(ctx, g.stack[:]); err != nil {
		return 0, nil, fmt.Errorf("alloc(%d): %s", n, trapText(err, g.out))
	}
	ptr = uint32(g.stack[0])
	view, ok := g.mem.Read(ptr, uint32(n))
	if !ok || ptr == 0 && n > 0 {
		return 0, nil, fmt.Errorf("alloc(%d) returned %#x, which is not within its memory of %d bytes", n, ptr, g.mem.Size())
	}
	return ptr, view, nil
}

// invoke makes the call and returns the reply as a view of the module's memory.
func (g *guest) invoke(ctx context.Context, method, ptr uint32, n int) ([]byte, error) {
	g.stack[0], g.stack[1], g.stack[2] = uint64(method), uint64(ptr), uint64(n)
	if err := g.call.CallWithStack(ctx, g.stack[:]); err != nil {
		return nil, errors.New(trapText(err, g.out))
	}
	at, size := uint32(g.stack[0]>>32), uint32(g.stack[0])
	if int64(size) > int64(g.limit) {
		return nil, fmt.Errorf("it returned %d bytes, the limit is %d", size, g.limit)
	}
	view, ok := g.mem.Read(at, size)
	if !ok {
		return nil, fmt.Errorf("it returned %d bytes at %#x, which are not within its memory of %d bytes", size, at, g.mem.Size())
	}
	return view, nil
}

// trapText describes why the module stopped, with what it printed last.
func trapText(err error, out *output) string {
	var exit *sys.ExitError
	text := err.Error()
	if errors.As(err, &exit) {
		text = fmt.Sprintf("it exited with code %d", exit.ExitCode())
	} else if i := strings.Index(text, "\nwasm stack trace:"); i > 0 {
		// The first frames are enough to find the place.
		lines := strings.Split(strings.TrimSpace(text[i+1:]), "\n")
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		text = text[:i] + " at " + strings.Join(lines[1:min(len(lines), 4)], " < ")
	}
	if tail := out.tail(); tail != "" {
		text += "; it printed: " + tail
	}
	return text
}
