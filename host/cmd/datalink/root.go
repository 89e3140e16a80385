package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/datalink-go/datalink/coordination/embedded"
	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/host/daemon"
	"github.com/datalink-go/datalink/registry"
)

const (
	defaultDataDir = "./datalink-data"
	dataDirEnv     = "DATALINK_DATA_DIR"
)

// app is what the commands share.
type app struct {
	out, err  io.Writer
	pluginDir string

	dataDir   string
	output    string
	logLevel  string
	logFormat string
	apiURL    string
	access    api.Access
	tokenFile string
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "datalink",
		Short: "Move row changes between databases, exactly once",
		Long: `DataLink reads the changes of a source in order and writes them to one or more
targets, so that source and target are equal whatever is killed on the way.

Exit codes: 0 done · 1 failed while running · 2 bad usage or configuration ·
3 a check of source, target or plugin failed before anything was written ·
4 fenced: another execution owns the task · 5 differences or overlaps found ·
130 interrupted, drained.`,
		Example:       "  datalink run task.yaml\n  datalink serve --data-dir /var/lib/datalink\n  datalink task list",
		SilenceErrors: true, SilenceUsage: true, SuggestionsMinimumDistance: 2,
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.check() },
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(c, args[0])
			}
			return c.Help()
		},
		Args: cobra.ArbitraryArgs,
	}
	f := root.PersistentFlags()
	f.StringVar(&a.dataDir, "data-dir", "", fmt.Sprintf("folder with store, plugins and caches (default: environment variable %s, else %s; serve: %s)", dataDirEnv, defaultDataDir, serviceDir))
	f.StringVarP(&a.output, "output", "o", "text", "text or json")
	f.StringVar(&a.logLevel, "log-level", "", "debug, info, warn or error (default: warn, serve: info)")
	f.StringVar(&a.logFormat, "log-format", "text", "text or json")
	f.StringVar(&a.apiURL, "api", "", "API of a daemon: unix:///path/api.sock, http://127.0.0.1:PORT or https://HOST:PORT (default: that of the data directory, if one runs)")
	f.StringVar(&a.tokenFile, "api-token-file", "", "file with the API's token, for http and https")
	f.StringVar(&a.access.CA, "api-ca", "", "file with the authority of the API's certificate, for https")
	f.StringVar(&a.access.Cert, "api-cert", "", "file with a client certificate, for https")
	f.StringVar(&a.access.Key, "api-key", "", "file with the client certificate's key")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(a.runCommand(), a.serveCommand(), a.taskCommand(), a.verifyCommand(), a.auditCommand(), a.workerCommand(), a.groupCommand(), a.pluginCommand(), a.doctorCommand(), a.versionCommand(), a.childCommand())
	usageErrors(root)
	a.completions(root)
	return root
}

// flagError says which flag may have been meant.
func flagError(c *cobra.Command, err error) error {
	name, is := strings.CutPrefix(err.Error(), "unknown flag: --")
	var near []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if is && !f.Hidden && plain(f.Name) == plain(name) {
			near = append(near, "--"+f.Name)
		}
	})
	if len(near) > 0 {
		return api.Errorf(api.Usage, "%w, did you mean %s?", err, strings.Join(near, " or "))
	}
	return api.Errorf(api.Usage, "%w; see `%s --help`", err, c.CommandPath())
}

// plain is a flag's name as it is remembered.
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(name))
}

// check looks at the flags that all commands have.
func (a *app) check() error {
	a.dataDir = a.folder(defaultDataDir)
	if a.output != "text" && a.output != "json" {
		return api.Errorf(api.Usage, "--output: found %q, expected text or json", a.output)
	}
	if a.logFormat != "text" && a.logFormat != "json" {
		return api.Errorf(api.Usage, "--log-format: found %q, expected text or json", a.logFormat)
	}
	if a.logLevel != "" {
		var l slog.Level
		if err := l.UnmarshalText([]byte(a.logLevel)); err != nil {
			return api.Errorf(api.Usage, "--log-level: found %q, expected debug, info, warn or error", a.logLevel)
		}
	}
	return nil
}

// usageErrors makes wrong arguments of all commands errors of kind Usage.
func usageErrors(c *cobra.Command) {
	if args := c.Args; args != nil {
		c.Args = func(c *cobra.Command, got []string) error {
			if err := args(c, got); err != nil {
				return api.Errorf(api.Usage, "%w; usage: %s", err, c.UseLine())
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		usageErrors(sub)
	}
}

// unknown is the error for a word that is no command.
func unknown(c *cobra.Command, word string) error {
	text := fmt.Sprintf("unknown command %q for %s", word, c.CommandPath())
	if near := c.SuggestionsFor(word); len(near) > 0 {
		return api.Errorf(api.Usage, "%s, did you mean %s?", text, strings.Join(near, " or "))
	}
	return api.Errorf(api.Usage, "%s, expected one of the commands of `%s --help`", text, c.CommandPath())
}

// group makes a command that only has others below it.
func group(use, short, example string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Example: example, Args: cobra.ArbitraryArgs, SuggestionsMinimumDistance: 2,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(c, args[0])
			}
			return api.Errorf(api.Usage, "%s needs a command: see `%s --help`", c.CommandPath(), c.CommandPath())
		},
	}
	c.AddCommand(subs...)
	return c
}

func notYet(name string) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, DisableFlagParsing: true,
		RunE: func(c *cobra.Command, _ []string) error {
			return api.Errorf(api.Usage, "%s: not in this version", c.CommandPath())
		},
	}
}

func (a *app) logger(standard slog.Level) *slog.Logger {
	level := standard
	if a.logLevel != "" {
		_ = level.UnmarshalText([]byte(a.logLevel)) // checked before
	}
	o := &slog.HandlerOptions{Level: level}
	if a.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(a.err, o))
	}
	return slog.New(slog.NewTextHandler(a.err, o))
}

func (a *app) bundled() (daemon.Bundled, error) { return daemon.ParseBundled(a.pluginDir, bundled) }

// node opens the data directory.
func (a *app) node(ctx context.Context, level slog.Level, wait time.Duration) (*daemon.Node, error) {
	return a.nodeWith(ctx, level, daemon.Config{Wait: wait})
}

// nodeWith fills in what all nodes have.
func (a *app) nodeWith(ctx context.Context, level slog.Level, cfg daemon.Config) (*daemon.Node, error) {
	b, err := a.bundled()
	if err != nil {
		return nil, err
	}
	pluginLevel := a.logLevel
	if pluginLevel == "" {
		pluginLevel = strings.ToLower(level.String())
	}
	cfg.DataDir, cfg.Bundled, cfg.Log, cfg.LogLevel = a.dataDir, b, a.logger(level), pluginLevel
	n, err := daemon.Open(ctx, cfg)
	switch {
	case errors.Is(err, embedded.ErrLocked):
		return nil, api.Errorf(api.Failed, "%w: %s", err, a.instead(ctx))
	case errors.Is(err, fs.ErrPermission):
		return nil, api.Errorf(api.Failed, "%w: be the user that owns it, or name another folder with --data-dir", err)
	}
	return n, err
}

// folder is the data directory that was named, or the standard one.
func (a *app) folder(standard string) string {
	return cmp.Or(a.dataDir, os.Getenv(dataDirEnv), standard)
}

// instead says what can be done while another process has the data directory.
func (a *app) instead(ctx context.Context) string {
	if api.Find(ctx, a.dataDir) != nil {
		return "it is a daemon: give it tasks with `datalink task apply FILE --data-dir " + a.dataDir + "`"
	}
	return "wait until it has ended, or stop it"
}

// installer gives access to the plugins without the store.
func (a *app) installer() (daemon.Installer, error) {
	b, err := a.bundled()
	return daemon.Installer{Plugins: daemon.Plugins{Store: registry.OpenStore(a.dataDir), Bundled: b}}, err
}

// backend returns the daemon that is named or found, else the data directory
// itself. Done gives it back.
func (a *app) backend(ctx context.Context) (b api.Backend, done func(), err error) {
	if a.apiURL != "" {
		access := a.access
		if a.tokenFile != "" {
			data, err := os.ReadFile(a.tokenFile)
			if err != nil {
				return nil, nil, api.Errorf(api.Usage, "--api-token-file: %w", err)
			}
			access.Token = strings.TrimSpace(string(data))
		}
		c, err := api.NewClient(a.apiURL, access)
		return c, func() {}, err
	}
	if c := api.Find(ctx, a.dataDir); c != nil {
		return c, func() {}, nil
	}
	n, err := a.node(ctx, slog.LevelWarn, 2*time.Second)
	if err != nil {
		return nil, nil, err
	}
	return n, func() {
		if err := n.Close(); err != nil {
			fmt.Fprintln(a.err, "datalink: close:", err)
		}
	}, nil
}

// with runs f on the backend.
func (a *app) with(c *cobra.Command, f func(ctx context.Context, b api.Backend) error) error {
	b, done, err := a.backend(c.Context())
	if err != nil {
		return err
	}
	defer done()
	return f(c.Context(), b)
}
