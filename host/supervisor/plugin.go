package supervisor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/wire"
)

// ConfigError says what is wrong with a plugin's configuration.
type ConfigError struct {
	Plugin   string
	Problems []sdk.Problem
}

// Error lists all problems.
func (e *ConfigError) Error() string {
	all := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		all[i] = p.String()
	}
	return fmt.Sprintf("configuration of plugin %s: %s", e.Plugin, strings.Join(all, "; "))
}

// Setup is what Configure tells an instance.
type Setup struct {
	Config     []byte // JSON with secrets resolved
	LogLevel   string
	FailPoints []string // tests; armed in the first process only
}

// Plugin is a supervised plugin.
type Plugin = Supervisor[*Client]

// NewPlugin returns a supervisor of processes that are configured before they
// are Ready. Configured, when not nil, is called with each new process and what
// it answered; its error counts as one of the start.
func NewPlugin(l *Launcher, cfg Config, setup Setup, opts Options, configured func(context.Context, *Client, *wire.ConfigureReply) error) *Plugin {
	if opts.Log == nil && cfg.Log != nil {
		opts.Log = cfg.Log.With("plugin", cfg.Image.Name, "instance", cfg.Instance)
	}
	told := opts.OnChange
	opts.OnChange = func(s State) {
		cfg.Metrics.changed(cfg, s)
		if told != nil {
			told(s)
		}
	}
	return New(func(ctx context.Context) (*Client, error) {
		c, err := Launch(ctx, l, cfg)
		if err != nil {
			return nil, err
		}
		err = func() error {
			points := setup.FailPoints
			setup.FailPoints = nil // starts come one after the other
			a, err := c.Configure(ctx, setup.Config, setup.LogLevel, points...)
			switch {
			case err != nil:
				return err
			case len(a.Problems) > 0:
				return &ConfigError{cfg.Image.Name, a.Problems}
			case configured != nil:
				return configured(ctx, c, a)
			}
			return nil
		}()
		if err != nil {
			c.Kill()
			return nil, err
		}
		return c, nil
	}, opts)
}

// hopeless reports whether another try of a start makes no sense.
func hopeless(err error) bool {
	for _, e := range []error{ErrDigest, ErrProtocol, ErrManifest, ErrLevel, ErrLauncherClosed} {
		if errors.Is(err, e) {
			return true
		}
	}
	var c *ConfigError
	if errors.As(err, &c) {
		return true
	}
	var f *sdk.Fault
	if errors.As(err, &f) && !f.Retryable {
		switch f.Code {
		case sdk.CodeInvalidConfig, sdk.CodeRefused, sdk.CodeUnimplemented, sdk.CodeUnauthorized:
			return true
		}
	}
	return false
}
