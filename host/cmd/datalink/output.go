package main

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"
)

// show prints a result: as JSON, or by text.
func (a *app) show(v any, text func()) error {
	if a.output != "json" {
		text()
		return nil
	}
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// table prints rows under a head, columns aligned.
func (a *app) table(head string, rows func(row func(format string, args ...any))) {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, head)
	rows(func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) })
	_ = w.Flush()
}

func (a *app) line(format string, args ...any) { fmt.Fprintf(a.out, format+"\n", args...) }

func (a *app) note(format string, args ...any) { fmt.Fprintf(a.err, format+"\n", args...) }

func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05Z")
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
