package supervisor

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// TestTranscripts plays the events of each transcript, "time event [random]" a
// line, and compares the states and effects below them.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.transcript")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".transcript"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := play(string(want))
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("%s: (-want +got)\n%s", file, d)
			}
		})
	}
}

func play(transcript string) (string, error) {
	var (
		out strings.Builder
		s   State
		p   Policy
	)
	for line := range strings.Lines(transcript) {
		f := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "\t"):
			continue
		case len(f) == 0, f[0] == "#":
			out.WriteString(line)
			continue
		case f[0] == "policy":
			if _, err := fmt.Sscanf(line, "policy deaths=%d", &p.Deaths); err != nil {
				return "", err
			}
			out.WriteString(line)
			continue
		}
		e, err := event(f)
		if err != nil {
			return "", fmt.Errorf("%q: %w", line, err)
		}
		var effects []Effect
		s, effects = p.Step(s, e)
		out.WriteString(line)
		fmt.Fprintf(&out, "\t%s wanted=%t alive=%t attempt=%d deaths=%d restarts=%d\n", s.Phase, s.Wanted, s.Alive, s.Attempt, len(s.Deaths), s.Restarts)
		for _, f := range effects {
			fmt.Fprintf(&out, "\t  → %s", f.Kind)
			if f.Kind == Waiting {
				fmt.Fprintf(&out, " %s", f.Delay)
			}
			out.WriteString("\n")
		}
	}
	return out.String(), nil
}

func event(f []string) (e Event, err error) {
	if e.At, err = time.ParseDuration(f[0]); err != nil {
		return e, err
	}
	k := slices.Index(eventNames[:], f[1])
	if k < 0 {
		return e, fmt.Errorf("no event %q", f[1])
	}
	e.Kind = EventKind(k)
	if len(f) > 2 {
		e.Random, err = strconv.ParseFloat(f[2], 64)
	}
	return e, err
}

// TestProperties plays random events against a world that holds at most one
// process.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{Deaths: rapid.IntRange(1, 5).Draw(t, "deaths")}
		var (
			s       State
			at      time.Duration
			running bool // what the effects have made of the world
			wait    time.Duration
		)
		full := p.withDefaults()
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			at += time.Duration(rapid.Int64Range(0, int64(2*time.Minute)).Draw(t, "pause"))
			e := Event{At: at, Kind: EventKind(rapid.IntRange(0, len(eventNames)-1).Draw(t, "event")), Random: rapid.Float64Range(0, 0.999).Draw(t, "random")}
			switch e.Kind { // what only the world can say, and only when it is so
			case Started, Failed, Hopeless:
				if s.Phase != Starting && !(s.Phase == Draining && running) {
					continue
				}
			case Died, Charged, Ended:
				if !running || e.Kind == Charged && s.Phase == Starting { // it had no blocks yet
					continue
				}
			case Expired:
				if wait == 0 {
					continue
				}
			}
			old := s
			var effects []Effect
			s, effects = p.Step(s, e)
			if e.Kind == Failed || e.Kind == Hopeless || e.Kind == Died || e.Kind == Charged || e.Kind == Ended && old.Phase == Draining {
				running = false
			}
			wait = 0
			for _, f := range effects {
				switch f.Kind {
				case Launching:
					if running {
						t.Fatalf("%s in %+v launches beside a running process", e.Kind, old)
					}
					if !s.Wanted {
						t.Fatalf("%s in %+v launches what nobody wants", e.Kind, old)
					}
					running = true
				case Closing:
					if !running {
						t.Fatalf("%s in %+v closes what does not run", e.Kind, old)
					}
				case Waiting:
					if wait = f.Delay; wait < full.Min || wait > full.Max {
						t.Fatalf("%s in %+v waits %s, want %s to %s", e.Kind, old, wait, full.Min, full.Max)
					}
				}
			}
			switch {
			case s.Alive != running:
				t.Fatalf("%s in %+v: alive = %t, the world has %t", e.Kind, old, s.Alive, running)
			case old.Phase == Quarantined && s.Phase != Quarantined && e.Kind != Reset && e.Kind != Unwant:
				t.Fatalf("%s lifts the quarantine", e.Kind)
			case s.Phase != Quarantined && len(s.Deaths) >= p.Deaths:
				t.Fatalf("%s in %+v: %d deaths in the window and no quarantine", e.Kind, old, len(s.Deaths))
			case s.Phase == BackOff && wait == 0 && old.Phase != BackOff:
				t.Fatalf("%s in %+v: back-off without a wait", e.Kind, old)
			case s.Wanted && s.Phase == Stopped:
				t.Fatalf("%s in %+v: wanted, but stopped", e.Kind, old)
			}
			if old.Phase == BackOff && s.Phase == BackOff {
				wait = full.Min // it still runs
			}
		}
	})
}

// TestDelaysGrow shows the back-off: each delay lies between half and the whole
// of the doubled one before, from 1 s to 5 min.
func TestDelaysGrow(t *testing.T) {
	p := Policy{}.withDefaults()
	whole := p.Min
	for attempt := 1; attempt < 40; attempt++ {
		lo, hi := p.delay(attempt, 0), p.delay(attempt, 0.999999)
		if lo < max(p.Min, whole/2) || hi > whole || attempt > 1 && lo == hi {
			t.Errorf("attempt %d: delays %s to %s, want %s to %s", attempt, lo, hi, max(p.Min, whole/2), whole)
		}
		whole = min(2*whole, p.Max)
	}
}
