package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/datalink-go/datalink/host/api"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor [TASK.yaml…]", Short: "Say what would make tasks fail or lose data",
		Long: `Look at the installation and at tasks: of the files, or all that were applied.
Connectors are started and asked to look at their store; nothing is written. Each
line says what to do. Exit code 2: a task file is wrong; 3: something else is.`,
		Example: "  datalink doctor task.yaml",
		RunE: func(c *cobra.Command, args []string) error {
			files, err := readFiles(args)
			if err != nil {
				return err
			}
			return a.with(c, func(ctx context.Context, b api.Backend) error {
				found, err := b.Doctor(ctx, files)
				if err != nil {
					return err
				}
				if err := a.show(map[string]any{"findings": found}, func() { a.findings(found) }); err != nil {
					return err
				}
				return verdict(found)
			})
		},
	}
}

func (a *app) findings(found []api.Finding) {
	for _, f := range found {
		where := f.Subject
		if f.Task != "" {
			where = f.Task + ": " + where
		}
		a.line("%-7s %s: %s", f.Severity, where, f.Message)
		if f.Advice != "" {
			a.line("        → %s", f.Advice)
		}
	}
}

func verdict(found []api.Finding) error {
	bad, config := 0, false
	for _, f := range found {
		if f.Severity == "error" {
			bad++
			config = config || f.Config
		}
	}
	kind, text := api.CheckFailed, fmt.Sprintf("%d errors have to be mended", bad)
	switch {
	case bad == 0:
		return nil
	case bad == 1:
		text = "1 error has to be mended"
	}
	if config {
		kind = api.Usage
	}
	return api.As(kind, errors.New(text))
}
