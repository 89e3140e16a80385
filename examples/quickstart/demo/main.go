// Command demo is what `make demo` runs after the build: it fills a registry
// folder with the connectors that were built, installs them from there, runs the
// two tasks of examples/quickstart, shows the first rows of each target table and
// compares all of them with what the recorded servers held.
//
// It drives the datalink program as a user would and looks at the targets by
// itself. What it does not do: it tests nothing that a run in the foreground does
// not show; see host/crashtest for that.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// job is one task of the demo.
type job struct {
	task   string // file
	target string // SQLite file
	expect string // folder with what the server held
}

type demo struct {
	bin  string
	dir  string
	data string
}

func main() {
	d := demo{}
	flag.StringVar(&d.bin, "bin", "bin", "folder with datalink, plugins and localregistry")
	flag.StringVar(&d.dir, "dir", "demo-out", "folder for registry, data directory and targets")
	flag.Parse()
	d.data = filepath.Join(d.dir, "data")
	if err := d.run(); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func (d *demo) run() error {
	begun := time.Now()
	if err := d.install(); err != nil {
		return err
	}
	jobs := []job{
		{"examples/quickstart/mysql.yaml", filepath.Join(d.dir, "mysql.db"), "examples/quickstart/binlogs/mysql97.expect"},
		{"examples/quickstart/mariadb.yaml", filepath.Join(d.dir, "mariadb.db"), "examples/quickstart/binlogs/mariadb1011.expect"},
	}
	written := 0
	for _, j := range jobs {
		n, err := d.move(j)
		if err != nil {
			return err
		}
		written += n
	}
	for _, j := range jobs {
		if err := look(context.Background(), j); err != nil {
			return err
		}
	}
	fmt.Printf("\n%d changes written; install, two tasks and the comparison took %.1f s\n", written, time.Since(begun).Seconds())
	if written == 0 {
		fmt.Println("Nothing was written twice: an earlier run had stored its position in the targets, in the transactions that wrote the rows.")
		fmt.Println("`make clean` removes what it left.")
	} else {
		fmt.Println("Run `make demo` again: it will find nothing to do.")
	}
	return nil
}

// install makes a registry folder of what was built and installs from it.
func (d *demo) install() error {
	reg := filepath.Join(d.dir, "registry")
	// A version never changes in a registry; what was built just now may have.
	for _, p := range []string{reg, filepath.Join(d.data, "plugins"), filepath.Join(d.data, "plugins.lock")} {
		if err := removeAll(p); err != nil {
			return err
		}
	}
	fmt.Println("== registry")
	cache := filepath.Join(d.data, "cache", "wasm") // the module is compiled once
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return err
	}
	files := []string{filepath.Join(d.bin, "plugins", "mysql"), filepath.Join(d.bin, "plugins", "rdbms"), filepath.Join(d.dir, "mask-go.wasm")}
	if err := d.command(filepath.Join(d.bin, "localregistry"), append([]string{"--to", reg, "--cache", cache}, files...)...); err != nil {
		return err
	}
	fmt.Println("== install")
	for _, name := range []string{"mysql", "rdbms", "mask-go@1.0.0"} {
		if err := d.datalink("plugin", "install", name, "--registry", reg); err != nil {
			return err
		}
	}
	return nil
}

func removeAll(path string) error {
	err := filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			return os.Chmod(p, 0o700)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(path)
}

// move runs one task and returns how many changes it wrote.
func (d *demo) move(j job) (int, error) {
	fmt.Printf("== run %s\n", j.task)
	cmd := exec.Command(filepath.Join(d.bin, "datalink"), "run", j.task, "--until", "end", "--data-dir", d.data, "--output", "json")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("datalink run %s: %w", j.task, err)
	}
	var s struct {
		Task, State, Reason, Position string
		DurationSeconds               float64
		Records                       struct{ Read, Filtered, Written, Skipped, DeadLettered int }
		Tables                        []struct {
			Name                       string
			Inserted, Updated, Deleted int
		}
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return 0, fmt.Errorf("summary of %s: %w", j.task, err)
	}
	if s.Records.Written == 0 && s.State == "ended" {
		return 0, nil // datalink has said why
	}
	fmt.Printf("%s: %s, %s\n  read %d, written %d, skipped %d in %.1f s, now at %s\n", s.Task, s.State, s.Reason,
		s.Records.Read, s.Records.Written, s.Records.Skipped, s.DurationSeconds, s.Position)
	for _, t := range s.Tables {
		fmt.Printf("  %-12s %5d inserted %5d updated %5d deleted\n", t.Name, t.Inserted, t.Updated, t.Deleted)
	}
	return s.Records.Written, nil
}

func (d *demo) datalink(args ...string) error {
	return d.command(filepath.Join(d.bin, "datalink"), append(args, "--data-dir", d.data)...)
}

func (d *demo) command(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %q: %w", name, args, err)
	}
	return nil
}
