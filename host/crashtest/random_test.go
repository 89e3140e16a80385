package crashtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// workload is a source, a task that reads it, and what the target holds at the end.
type workload struct {
	name string
	spec spec
	want expected
	end  progress // position after all of it
}

func workloads(t *testing.T, seed uint64) []*workload {
	t.Helper()
	var out []*workload
	for i, options := range []string{"keyless: append", "keyless: append, lanes: 3", "keyless: append"} {
		src := newModel(seed + uint64(i))
		for range 3 {
			src.transactions(150)
			src.large(400)
		}
		src.transactions(150)
		log := filepath.Join(t.TempDir(), "crash.000001")
		if err := src.write(log); err != nil {
			t.Fatal(err)
		}
		mask := i < 2
		out = append(out, &workload{
			name: fmt.Sprint("generated ", i), want: src.rows(mask),
			spec: spec{files: log, tables: "crash.*", mask: mask, writers: []writer{{name: "target", options: options}}},
		})
	}
	for _, name := range []string{"mysql97", "mariadb1011"} {
		out = append(out, &workload{
			name: name, want: recorded(t, name, "shop", "keyed", "tx", "stmts", "times", "text"),
			spec: spec{
				files: filepath.Join(built.root, "examples/quickstart/binlogs", name+".00000?"), tables: `shop.*", "keyed.*", "tx.*", "stmts.*", "times.*", "text.*`,
				writers: []writer{{name: "target", options: "keyless: full-row-match"}},
			},
		})
	}
	for _, w := range out { // without any kill, to learn where it ends
		r := newRig(t, w.spec)
		r.finish(w.want)
		if t.Failed() {
			t.Fatalf("%s: rows differ although nothing was killed", w.name)
		}
		w.end = progressOf(t, r.spec.writers[0].path)["crash/target/0"]
	}
	return out
}

// TestRandomKills kills a random process of a random workload at a random moment,
// up to three times in a row.
func TestRandomKills(t *testing.T) {
	rounds := int(fromEnv(t, "DATALINK_CRASH_ROUNDS", 40))
	seed := fromEnv(t, "DATALINK_CRASH_SEED", uint64(time.Now().UnixNano()))
	fmt.Printf("random kills: %d rounds, DATALINK_CRASH_SEED=%d\n", rounds, seed)
	all := workloads(t, seed)
	for i := range rounds {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		w := all[rng.IntN(len(all))]
		t.Run(fmt.Sprintf("%d %s", i, w.name), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, w.spec)
			if rng.IntN(3) == 0 {
				r.serveAndKill(rng, w)
			} else {
				r.runAndKill(rng, w)
			}
			r.finish(w.want)
		})
	}
}

func fromEnv(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s: expected a number", name, text)
	}
	return n
}

// runAndKill runs the task in the foreground.
func (r *rig) runAndKill(rng *rand.Rand, w *workload) {
	for range 1 + rng.IntN(3) {
		p := r.run()
		victim := r.kill(rng, p, w)
		code := p.wait()
		r.after(p)
		if code != 0 && !(victim == daemon && code == killed) {
			r.t.Errorf("run ended with %d after its %s was killed\n%s", code, victim, p.tail())
		}
	}
}

// serveAndKill runs the task in a daemon until all of it is written.
func (r *rig) serveAndKill(rng *rand.Rand, w *workload) {
	apply := start(r.t, nil, "task", "apply", r.file, "--data-dir", r.data)
	if code := apply.wait(); code != 0 {
		r.t.Fatalf("task apply ended with %d\n%s", code, apply.tail())
	}
	serve := func() *process { return start(r.t, small, "serve", "--data-dir", r.data) }
	p := serve()
	for range 1 + rng.IntN(3) {
		if r.kill(rng, p, w) == daemon {
			if code := p.wait(); code != killed {
				r.t.Fatalf("daemon ended with %d\n%s", code, p.tail())
			}
			r.after(p)
			p = serve()
		}
	}
	defer func() {
		if r.t.Failed() && !p.ended() {
			// What it is waiting for stands in its stacks.
			show := start(r.t, nil, "task", "show", "crash", "--data-dir", r.data)
			show.wait()
			_ = p.cmd.Process.Signal(unix.SIGQUIT)
			p.wait()
			r.t.Logf("task: %s\ndaemon: %s", show.tail(), p.tail())
		}
	}()
	until(r.t, "the daemon answers and has written everything", func() bool {
		if p.ended() {
			r.t.Fatalf("the daemon ended by itself\n%s", p.tail())
		}
		c, err := net.Dial("unix", filepath.Join(r.data, "api.sock"))
		if err != nil {
			return false // it has not begun, and would not be asked to end but killed by SIGTERM
		}
		_ = c.Close()
		return r.done(w)
	})
	r.equal(w.want) // while it runs
	if err := p.cmd.Process.Signal(unix.SIGTERM); err != nil {
		r.t.Fatal(err)
	}
	if code := p.wait(); code != 0 {
		r.t.Errorf("daemon ended with %d after SIGTERM, want 0\n%s", code, p.tail())
	}
	r.after(p)
}

// done reports whether the target has everything.
func (r *rig) done(w *workload) bool {
	all := progressOf(r.t, r.spec.writers[0].path)
	for _, at := range all {
		if at.file != w.end.file || at.offset != w.end.offset {
			return false
		}
	}
	return len(all) > 0
}

const daemon = "daemon"

// kill sends SIGKILL to the daemon or one of its children and says to whom. The
// moment is one of the start or, as often, one of the work.
func (r *rig) kill(rng *rand.Rand, p *process, w *workload) string {
	r.t.Helper()
	longest := 600
	if rng.IntN(2) == 0 {
		longest = 150
		target := r.spec.writers[0].path
		before := progressOf(r.t, target)
		until(r.t, "work begins", func() bool {
			return p.ended() || advanced(before, progressOf(r.t, target), 1) || r.done(w)
		})
	}
	time.Sleep(time.Duration(rng.IntN(longest)) * time.Millisecond) // the moment, not a wait for a state
	alive, choice := p.children(), rng.Uint64()
	victim := "nobody" // it has ended
	switch n := uint64(len(alive)); {
	case p.ended():
	case n == 0 || choice%3 == 0:
		victim = daemon
		_ = p.cmd.Process.Kill()
	default:
		c := alive[choice/3%n]
		victim = c.name
		c.signal(unix.SIGKILL)
	}
	r.t.Logf("killed %s", victim)
	return victim
}
