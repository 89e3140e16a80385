package supervisor

import (
	"log/slog"
	"os"
	"time"

	"github.com/datalink-go/datalink/sdk/manifest"
	"github.com/datalink-go/datalink/sdk/wire"
)

// Config says how to run one instance of a plugin.
type Config struct {
	Image    *Image
	Role     manifest.Role
	Task     string
	Instance string // within the task, for messages: the writer's name, "reader", …
	// Manifest is what the plugin's package claims. Nil = nothing to compare with.
	Manifest *manifest.Manifest

	Env       []string   // NAME=value; nothing else is in the plugin's environment
	Dir       string     // working directory, for relative paths of a configuration; "" = /
	Inherit   []*os.File // descriptors that stay open in the plugin: the lock of the data directory
	Rlimits   Rlimits
	Limits    wire.Limits // zero fields = the defaults of the SDK
	MutualTLS bool        // between host and plugin, beside the check of the peer
	SocketDir string      // a private folder is made in it; "" = the system's for temporary files

	StartTimeout time.Duration // from start to the end of the handshake; 0 = 30 s
	CallTimeout  time.Duration // of a call whose context has no deadline; 0 = 2 min
	Grace        time.Duration // from the wish to end to SIGKILL; 0 = 10 s

	Log     *slog.Logger // nil = none
	Metrics *Metrics     // nil = none

	off switches // tests
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		v *time.Duration
		d time.Duration
	}{{&c.StartTimeout, 30 * time.Second}, {&c.CallTimeout, 2 * time.Minute}, {&c.Grace, 10 * time.Second}} {
		if *d.v == 0 {
			*d.v = d.d
		}
	}
	if c.Instance == "" {
		c.Instance = string(c.Role)
	}
	if c.Dir == "" {
		c.Dir = "/"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Limits = withDefaults(c.Limits)
	return c
}
