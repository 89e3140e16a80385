package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/datalink-go/datalink/coordination/embedded"
	"github.com/datalink-go/datalink/host/api"
	"github.com/datalink-go/datalink/registry"
)

// completeTime bounds what a shell waits for.
const completeTime = 2 * time.Second

// completions says what words the arguments and flags may have, for the scripts of
// `datalink completion`.
func (a *app) completions(root *cobra.Command) {
	words := func(c *cobra.Command, flag string, all ...string) {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp))
	}
	words(root, "output", "text", "json")
	words(root, "log-format", "text", "json")
	words(root, "log-level", "debug", "info", "warn", "error")
	_ = root.MarkPersistentFlagDirname("data-dir")
	for _, c := range root.Commands() {
		a.complete(c, words)
	}
}

func (a *app) complete(c *cobra.Command, words func(*cobra.Command, string, ...string)) {
	switch c.CommandPath() {
	case "datalink run":
		words(c, "until", "caught-up", "end")
		c.ValidArgsFunction = taskFiles
	case "datalink doctor", "datalink task apply":
		c.ValidArgsFunction = taskFiles
	case "datalink task show", "datalink task pause", "datalink task resume", "datalink task restart", "datalink task delete", "datalink task position":
		c.ValidArgsFunction = a.first(a.taskNames)
	case "datalink task dead-letters":
		c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch len(args) {
			case 0:
				return a.taskNames(c), cobra.ShellCompDirectiveNoFileComp
			case 1:
				return []string{"list", "show", "retry", "drop"}, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	case "datalink plugin show":
		c.ValidArgsFunction = a.first(a.pluginNames)
	case "datalink plugin install":
		_ = c.MarkFlagDirname("registry")
		c.ValidArgsFunction = a.first(registered)
	}
	for _, sub := range c.Commands() {
		a.complete(sub, words)
	}
}

func taskFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// first completes the first argument only.
func (a *app) first(names func(*cobra.Command) []string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(c), cobra.ShellCompDirectiveNoFileComp
	}
}

// taskNames asks a daemon, or looks into a data directory that is there already.
func (a *app) taskNames(c *cobra.Command) []string {
	a.dataDir = a.folder(defaultDataDir)
	ctx, cancel := context.WithTimeout(c.Context(), completeTime)
	defer cancel()
	var b api.Backend
	if found := api.Find(ctx, a.dataDir); found != nil {
		b = found
	} else {
		if _, err := os.Stat(filepath.Join(a.dataDir, embedded.LockName)); err != nil {
			return nil
		}
		n, err := a.node(ctx, slog.LevelError, 0)
		if err != nil {
			return nil
		}
		defer n.Close()
		b = n
	}
	tasks, err := b.Tasks(ctx)
	if err != nil {
		return nil
	}
	var out []string
	for _, t := range tasks {
		out = append(out, t.Name)
	}
	return out
}

func (a *app) pluginNames(*cobra.Command) []string {
	a.dataDir = a.folder(defaultDataDir)
	in, err := a.installer()
	if err != nil {
		return nil
	}
	all, err := in.List()
	if err != nil {
		return nil
	}
	var out []string
	for _, p := range all {
		out = append(out, p.Name)
	}
	return out
}

// registered lists the plugins of the registry that --registry or the environment
// names.
func registered(c *cobra.Command) []string {
	folder, _ := c.Flags().GetString("registry")
	if folder == "" {
		folder = os.Getenv(registryEnv)
	}
	f, err := registry.OpenFolder(folder)
	if err != nil {
		return nil
	}
	all, err := f.List()
	if err != nil {
		return nil
	}
	var out []string
	for _, m := range all {
		out = append(out, m.Name)
	}
	return out
}
