package wasmrt

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// ChildArg is the argument with which the host's binary is the child of a
// module; main calls ChildMain when it sees it.
const ChildArg = "wasm-child"

// Config says how modules are run.
type Config struct {
	// CacheDir keeps compiled modules, each in a folder named by its digest. It is
	// made when missing, and refused unless it is the user's own with mode 0700:
	// who can write there can run code in the child. Empty = no cache.
	CacheDir string
	// Exec is the program of the child; empty = this program.
	Exec string
	// Args are its arguments; empty = ChildArg.
	Args []string
	Log  *slog.Logger // nil = slog.Default()
}

// ModuleConfig says how one module is run.
type ModuleConfig struct {
	Name   string // for messages: task and transform
	Binary []byte // not used after Open
	SHA256 string // of Binary, in hexadecimal

	MemoryMB     uint32        // of the module's memory; 0 = 256
	CallTimeout  time.Duration // of one call; 0 = 10 s
	StartTimeout time.Duration // of starting, compiling and initialising; 0 = 60 s
	Deaths       int           // children that one call may kill; 0 = 3
	BackOff      time.Duration // before the first restart, doubled up to 100 times as much; 0 = 50 ms
	Limits       batch.Limits  // of blocks in both directions
	FailPoint    string        // tests: DATALINK_FAILPOINT of the first child

	size int // of Binary

	// Metric takes what the module counts; nil = dropped. Set says that it is a
	// value and not an increment. It is called while a call is under way.
	Metric func(name string, set bool, value float64)
}

// maxModule bounds the size of a module's file.
const maxModule = 64 << 20

// data returns what the child may allocate: its own runtime, the compiler (for a
// Go module 40 times the size of its file), the module's memory twice, since
// growing copies it, and messages.
func (c *ModuleConfig) data() uint64 {
	if raceDetector {
		return math.MaxUint64
	}
	return 256<<20 + 48*uint64(c.size) + 2*uint64(c.MemoryMB)<<20 + 4*uint64(c.message())
}

func (c *ModuleConfig) withDefaults() {
	if c.MemoryMB == 0 {
		c.MemoryMB = 256
	}
	if c.CallTimeout <= 0 {
		c.CallTimeout = 10 * time.Second
	}
	if c.StartTimeout <= 0 {
		c.StartTimeout = time.Minute
	}
	if c.Deaths <= 0 {
		c.Deaths = 3
	}
	if c.BackOff <= 0 {
		c.BackOff = 50 * time.Millisecond
	}
	if c.Limits.Block <= 0 {
		c.Limits.Block = batch.DefaultBlock
	}
}

func (c *ModuleConfig) check() error {
	if len(c.Binary) > maxModule {
		return sdk.Faultf(sdk.CodeTooLarge, "module %s has %d bytes, the limit is %d", c.Name, len(c.Binary), maxModule)
	}
	if c.MemoryMB > 4096 {
		return sdk.Faultf(sdk.CodeInvalidConfig, "module %s asks for %d MB of memory, the limit of WebAssembly is 4096", c.Name, c.MemoryMB)
	}
	if got := digest(c.Binary); got != c.SHA256 {
		return sdk.Faultf(sdk.CodeRefused, "module %s: its SHA-256 is %s, expected %q", c.Name, got, c.SHA256).
			Suggest("install the plugin again, or name the digest of the file that is meant")
	}
	return nil
}

func digest(p []byte) string {
	h := sha256.Sum256(p)
	return hex.EncodeToString(h[:])
}

// message is the limit of a request or reply: a block and what is around it.
func (c *ModuleConfig) message() int { return c.Limits.Block + 64<<10 }

func (c *ModuleConfig) String() string { return fmt.Sprintf("%s (sha256 %.12s…)", c.Name, c.SHA256) }
