package clustertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/datalink-go/datalink/examples/stack"
)

// route is a task from a source to one target.
type route struct {
	name   string
	from   *origin
	to     string        // mariadb, postgres, sqlite, files
	server *stack.Server // of the target, nil for sqlite and files
	path   string        // of sqlite and files
}

// fenced says that the target refuses late writes by itself.
func (j *route) fenced() bool { return j.to != "files" }

// spec is the task's file. Servers are named by variables of the worker's
// environment, so that each worker has its own way there.
func (j *route) spec() string {
	writer, start := fmt.Sprintf("{name: w, plugin: rdbms, config: {url: %q}}", "sqlite://"+j.path), "snapshot"
	switch j.to {
	case "mariadb":
		writer = `{name: w, plugin: rdbms, config: {url: "mariadb://root@${env:TARGET_MARIADB}/datalink", networkTimeout: 5s, lockTimeout: 5s}}`
	case "postgres":
		writer = `{name: w, plugin: rdbms, config: {url: "postgres://postgres@${env:TARGET_POSTGRES}/postgres", networkTimeout: 5s, lockTimeout: 5s}}`
	case "files":
		start = "earliest" // the writer does not reconcile ranges of a snapshot
		writer = fmt.Sprintf("{name: w, plugin: jsonfiles, config: {dir: %q}}", j.path)
	}
	return fmt.Sprintf(`apiVersion: datalink/v1
task: %s
reader:
  plugin: mysql
  config: {address: "${env:SOURCE_%s}", user: root, password: "", heartbeat: 500ms, tables: ["%s.*"], start: %s}
writers:
  - %s
`, j.name, strings.ToUpper(j.from.Kind), j.from.schema, start, writer)
}

// expected asks the source's own client for the rows of a table.
func (j *route) expected(table, text string) []string {
	return sorted(j.from.SQL(fmt.Sprintf("SELECT CONCAT_WS('|', %s) FROM %s.%s", text, j.from.schema, table), "-N", "-r"))
}

// found asks the target's own client for them.
func (j *route) found(table, text string) ([]string, error) {
	switch j.to {
	case "mariadb":
		return sorted(j.server.SQL(fmt.Sprintf("SELECT CONCAT_WS('|', %s) FROM %s.%s", text, j.from.schema, table), "-N", "-r")), nil
	case "postgres":
		return sorted(j.server.SQL(fmt.Sprintf("SELECT CONCAT_WS('|', %s) FROM %s.%s", text, j.from.schema, table), "-A", "-t", "-q")), nil
	case "sqlite":
		cmd := exec.Command("sqlite3", "-readonly", "-cmd", ".timeout 10000", j.path,
			fmt.Sprintf(`SELECT %s FROM "%s.%s"`, strings.ReplaceAll(text, ", ", " || '|' || "), j.from.schema, table))
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("sqlite3: %w %s", err, errs.Bytes())
		}
		return sorted(string(out)), nil
	}
	return j.files(table, strings.Split(text, ", "))
}

func (j *route) files(table string, columns []string) ([]string, error) {
	names, err := filepath.Glob(filepath.Join(j.path, j.from.schema+"."+table, "*.json"))
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range names {
		data, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue // it was deleted meanwhile
		}
		row := map[string]string{}
		if err == nil {
			err = json.Unmarshal(data, &row)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		var parts []string
		for _, c := range columns {
			parts = append(parts, row[c])
		}
		out = append(out, strings.Join(parts, "|"))
	}
	slices.Sort(out)
	return out, nil
}

func sorted(text string) []string {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	return slices.Sorted(strings.SplitSeq(text, "\n"))
}

// differ compares a target with its source, row for row; ended says that the row
// that was written last has arrived.
func (j *route) differ() (diffs []string, ended bool) {
	ended = true
	for _, t := range tables {
		want := j.expected(t.name, t.text)
		got, err := j.found(t.name, t.text)
		if err != nil {
			return []string{err.Error()}, false
		}
		ended = ended && slices.ContainsFunc(got, func(r string) bool { return strings.Contains(r, fmt.Sprint(last)) })
		for _, r := range want {
			if _, ok := slices.BinarySearch(got, r); !ok {
				diffs = append(diffs, fmt.Sprintf("%s.%s lacks %s", j.from.schema, t.name, r))
			}
		}
		for _, r := range got {
			if _, ok := slices.BinarySearch(want, r); !ok {
				diffs = append(diffs, fmt.Sprintf("%s.%s has %s", j.from.schema, t.name, r))
			}
		}
		if len(diffs) == 0 && len(got) != len(want) {
			diffs = append(diffs, fmt.Sprintf("%s.%s has %d rows, want %d", j.from.schema, t.name, len(got), len(want)))
		}
	}
	return diffs, ended
}
