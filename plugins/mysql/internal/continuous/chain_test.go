package continuous

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/google/go-cmp/cmp"

	"github.com/datalink-go/datalink/examples/stack"
	"github.com/datalink-go/datalink/examples/stack/programs"
	"github.com/datalink-go/datalink/plugins/mysql/alltypes"
)

// TestContinuousChain runs the program itself, with its plugins, from two servers of
// which one follows the other into a third. Host, plugins and servers are killed, and
// the servers' own client prints both sides. The short form takes one kind of server,
// by the seed.
func TestContinuousChain(t *testing.T) { each(t, chain, servers) }

func chain(t *testing.T, kind string, which alltypes.Server, options []string, seed uint64) error {
	program, err := programs.Build(t.TempDir(), "", "./plugins/mysql", "./plugins/rdbms")
	if err != nil {
		return err
	}
	options = append(options[:len(options):len(options)], following...)
	a, b, target := stack.Start(t, kind, options...), stack.Start(t, kind, options...), stack.Start(t, kind)
	g := newRig(t, which, a, seed)
	t.Cleanup(func() { keep(t, a) })
	follow(a, b)
	// What a conversion gives depends on the session that asked for it.
	g.src.Retype, g.src.Keyless = false, os.Getenv("DATALINK_CHAIN_KEYLESS") != ""
	g.src.Zones = []string{"+03:30"} // all times are in range there
	g.src.Pause = 10 * time.Millisecond
	g.begin()
	if err := level(a, b); err != nil {
		return err
	}
	target.SQL("CREATE DATABASE datalink; CREATE DATABASE " + Database + " CHARACTER SET utf8mb4;")
	p := &process{t: t, program: program, dir: t.TempDir()}
	p.task(fmt.Sprintf(`apiVersion: datalink/v1
task: continuous
reader:
  plugin: mysql
  config: {address: [%q, %q], user: root, tables: ["%s.*", "!%s.mark"], start: snapshot, heartbeat: 500ms}
writers:
  - name: target
    plugin: rdbms
    config: {url: "%s://root@%s/datalink", keyless: full-row-match, lanes: 2}
    mappings: [{from: "%s.*", to: "%s.{table}"}]
`, b.Addr(), a.Addr(), Database, Database, kind, target.Addr(), Database, Database))
	g.write()
	moved := g.after(0.4, func() error {
		b.Kill()
		dead(b)
		b.Restart()
		release := g.src.Hold()
		defer release()
		if err := level(a, b); err != nil {
			return err
		}
		a.Kill()
		dead(a)
		alone(b)
		g.at.Store(b.Addr())
		return nil
	})
	killed := map[string]int{}
	for done := false; !done; {
		select {
		case err := <-g.broken:
			return err
		case <-g.wrote:
			done = true
		default:
			killed[p.live(time.Duration(500+g.r.IntN(5000))*time.Millisecond, g.r.IntN(3))]++
		}
	}
	<-moved
	if g.at.Load() != b.Addr() {
		return fmt.Errorf("the sessions did not go over")
	}
	if err := g.quiet(); err != nil {
		return err
	}
	// Caught up means that no row came for some seconds: on a busy machine the last
	// ones may come later.
	var tables, rows int
	var diff string
	for range 3 {
		if out, err := p.finish(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		if tables, rows, diff = same(b, target); diff == "" {
			break
		}
	}
	s := g.src
	t.Logf("%d transactions, %d rolled back, %d by XA, %d statements, %d schema changes; killed %v; %d tables, %d rows equal", s.Committed.Load(), s.RolledBack.Load(), s.XA.Load(), s.Changes.Load(), s.Schema.Load(), killed, tables, rows)
	if diff != "" {
		return fmt.Errorf("differences (-source +target):\n%s", diff)
	}
	if rows < 20 {
		return fmt.Errorf("too little was done: %d rows", rows)
	}
	return nil
}

// process is the program at work on a task.
type process struct {
	t       *testing.T
	program string
	dir     string
}

func (p *process) task(text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, "task.yaml"), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) command(ctx context.Context, more ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, p.program, append([]string{"run", filepath.Join(p.dir, "task.yaml"), "--data-dir", filepath.Join(p.dir, "data"), "--output", "json"}, more...)...)
	c.WaitDelay = 20 * time.Second
	return c
}

// live runs the program for a while and kills it, or first one of its plugins. It
// returns what ended.
func (p *process) live(d time.Duration, which int) string {
	c := p.command(context.Background())
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case <-ended:
		return "ended by itself"
	case <-time.After(d):
	}
	what := "host"
	if children := childrenOf(c.Process.Pid); which > 0 && len(children) > 0 {
		what = "plugin"
		_ = unix.Kill(children[which%len(children)], unix.SIGKILL)
		select { // it starts the plugin again, or ends
		case <-ended:
			return what
		case <-time.After(d / 2):
		}
	}
	_ = c.Process.Kill()
	<-ended
	return what
}

func childrenOf(pid int) (out []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, l := range lists {
		data, _ := os.ReadFile(l)
		for _, f := range strings.Fields(string(data)) {
			if n, err := strconv.Atoi(f); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

// finish runs the program until it has written everything.
func (p *process) finish() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	out, err := p.command(ctx, "--until", "caught-up").CombinedOutput()
	return string(out), err
}

// same has each server print all rows, and returns how they differ.
func same(source, target *stack.Server) (tables, rows int, diff string) {
	columns := func(s *stack.Server) map[string][]string {
		out := map[string][]string{}
		for line := range strings.Lines(s.SQL("SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '"+Database+"' AND TABLE_NAME <> 'mark' ORDER BY 1, 2", "-N")) {
			f := strings.Fields(line)
			out[f[0]] = append(out[f[0]], f[1]+" "+f[2])
		}
		return out
	}
	want, got := columns(source), columns(target)
	if diff = cmp.Diff(want, got); diff != "" {
		return 0, 0, diff
	}
	for table, cols := range want {
		q := "SET time_zone = '+00:00'; SELECT CONCAT_WS(' '"
		for _, c := range cols {
			name, kind, _ := strings.Cut(c, " ")
			q += ", '" + name + "', IFNULL(HEX(" + printed("`"+name+"`", kind) + "), 'NULL')"
		}
		q += ") FROM " + Database + "." + table
		lines := func(s *stack.Server) []string {
			return slices.Sorted(strings.Lines(s.SQL(q, "-N", "-r")))
		}
		w, g := lines(source), lines(target)
		tables, rows = tables+1, rows+len(w)
		if d := cmp.Diff(w, g); d != "" {
			diff += table + ":\n" + d
		}
	}
	return tables, rows, diff
}

func printed(name, kind string) string {
	switch kind {
	case "float", "double":
		return "CAST(CAST(" + name + " AS DOUBLE) AS CHAR)"
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set", "json":
		return "CONVERT(" + name + " USING utf8mb4)"
	case "bit", "tinyint", "smallint", "mediumint", "int", "bigint": // ZEROFILL is how a column is shown
		return "CAST(" + name + " + 0 AS CHAR)"
	case "decimal", "date", "time", "datetime", "timestamp", "year", "uuid", "inet4", "inet6":
		return "CAST(" + name + " AS CHAR)"
	}
	return name
}
