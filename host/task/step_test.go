package task

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/sdk"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// TestTranscripts replays the events of each transcript ("> event") and compares
// the phases and effects that follow.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("transcripts: got %d, %v", len(files), err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, string(data))
			if *update {
				if err := os.WriteFile(f, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(string(data), got); d != "" {
				t.Errorf("%s (-file +now), -update rewrites it:\n%s", f, d)
			}
		})
	}
}

func replay(t *testing.T, text string) string {
	t.Helper()
	var out strings.Builder
	s := State{Limits: Limits{Tries: 3, Raises: 2}}
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "#"), strings.TrimSpace(line) == "" && out.Len() == 0:
			out.WriteString(line)
		case strings.HasPrefix(line, "> "):
			e := parse(t, strings.TrimSpace(line[2:]))
			var fx []Effect
			s, fx = Step(s, e)
			fmt.Fprintf(&out, "> %s\n  %s\n", e, describe(s))
			for _, x := range fx {
				fmt.Fprintf(&out, "  do %s\n", x)
			}
		}
	}
	return out.String()
}

func describe(s State) string {
	d := string(s.Phase)
	if s.Goal != "" {
		d += " → " + string(s.Goal)
	}
	if s.Epoch != 0 {
		d += fmt.Sprintf(", epoch %d", s.Epoch)
	}
	if s.Reason != "" {
		d += fmt.Sprintf(", %q", s.Reason)
	}
	return d
}

// parse reads what Event.String writes.
func parse(t *testing.T, line string) Event {
	t.Helper()
	word, rest, _ := strings.Cut(line, " ")
	e := Event{Kind: EventKind(word)}
	for rest != "" {
		if rest[0] == '"' {
			text, err := strconv.QuotedPrefix(rest)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			rest = strings.TrimSpace(rest[len(text):])
			text, _ = strconv.Unquote(text)
			if e.Fault != nil && e.Fault.Message == "" {
				e.Fault.Message = text
			} else {
				e.Text = text
			}
			continue
		}
		word, rest, _ = strings.Cut(rest, " ")
		n, err := strconv.ParseUint(word, 10, 64)
		cause, isCause := strings.CutPrefix(word, "cause=")
		switch {
		case err == nil:
			e.Epoch = n
		case isCause:
			e.Cause = coordination.Cause(cause)
		case e.Kind == EvFault:
			e.Fault = &sdk.Fault{Code: sdk.Code(word)}
		default:
			e.Want = Phase(word)
		}
	}
	return e
}

// world answers effects at random and checks what Step asks for.
type world struct {
	t        *rapid.T
	s        State
	live     bool // connectors may live
	claimed  bool // every writer, with the epoch that counts
	taken    bool
	ended    bool
	released bool
	lost     bool
	finished bool
	overlap  bool
	fenced   bool
	queue    []EffectKind // slow effects that wait
	abort    bool
	timer    bool
	grace    bool
	stopping bool
	silent   int // times that the store did not answer at the end
	mutate   func(Effect) []Effect
}

func (w *world) step(e Event) {
	if w.finished {
		return
	}
	if e.Kind == EvFault && e.Fault.Code == sdk.CodeFenced && w.s.Phase != Closing && w.taken {
		w.fenced = true
	}
	var fx []Effect
	before := w.s
	w.s, fx = Step(w.s, e)
	if w.mutate != nil {
		var changed []Effect
		for _, f := range fx {
			changed = append(changed, w.mutate(f)...)
		}
		fx = changed
	}
	for _, f := range fx {
		w.t.Logf("%s: %s → %s: %s", e, before.Phase, w.s.Phase, f)
		w.effect(f)
	}
	if w.s.Phase.Final() != w.finished {
		w.t.Fatalf("%s: phase %s, finish was asked for: %v", e, w.s.Phase, w.finished)
	}
}

func (w *world) effect(f Effect) {
	t := w.t
	if w.finished {
		t.Fatalf("effect %s after the end", f)
	}
	switch f.Kind {
	case DoStart, DoClaim, DoRaise, DoRun, DoAudit:
		if !w.taken || w.released || w.ended {
			t.Fatalf("effect %s without owning the task", f)
		}
		if w.lost {
			t.Fatalf("effect %s after the session was lost", f)
		}
	case DoTake:
		if w.taken {
			t.Fatalf("took twice")
		}
	}
	switch f.Kind {
	case DoStart:
		if w.live {
			t.Fatalf("started connectors over live ones")
		}
		w.live, w.claimed = true, false
	case DoRaise:
		w.claimed = false
	case DoRun:
		if !w.claimed {
			t.Fatalf("ran the pipeline without a claim of every writer with the last epoch")
		}
	case DoOverlap:
		w.overlap = true
	case DoRelease:
		if w.live {
			t.Fatalf("released with live connectors")
		}
		if !w.ended {
			t.Fatalf("release was asked for before the end was written")
		}
	case DoStop:
		w.stopping = true
		return
	case DoAbort:
		w.abort = true
		return
	case DoKill:
		w.abort = true
		return
	case DoGrace:
		w.grace = true
		return
	case DoTimer:
		w.timer = true
		return
	case DoShow:
		return
	case DoFinish:
		w.finished = true
		if w.live {
			t.Fatalf("finished with live connectors")
		}
		if w.fenced && !w.overlap {
			t.Fatalf("a fence was seen, no overlap was recorded")
		}
		return
	}
	w.queue = append(w.queue, f.Kind)
}

// answer performs the oldest slow effect.
func (w *world) answer() {
	if len(w.queue) == 0 {
		if w.timer {
			w.timer = false
			w.step(Event{Kind: EvTimer})
		}
		return
	}
	k := w.queue[0]
	pick := func(of ...Event) Event {
		for i := range of {
			if of[i].Kind == EvFault && of[i].Fault == nil {
				of[i].Fault = sdk.Faultf(rapid.SampledFrom([]sdk.Code{
					sdk.CodeUnavailable, sdk.CodeInternal, sdk.CodeInvalidConfig, sdk.CodePositionPurged, sdk.CodeForeignClaim, sdk.CodeFenced,
				}).Draw(w.t, "code"), "something")
			}
		}
		return rapid.SampledFrom(of).Draw(w.t, string(k))
	}
	if w.abort && (k == DoStart || k == DoClaim || k == DoRaise || k == DoRun || k == DoAudit) {
		w.queue = w.queue[1:]
		w.step(Event{Kind: EvFault, Fault: sdk.Faultf(sdk.CodeInternal, "canceled")})
		return
	}
	ownFault := Event{Kind: EvFault, Fault: sdk.Faultf(sdk.CodeUnavailable, "no answer")}
	w.queue = w.queue[1:]
	switch k {
	case DoLook:
		w.step(pick(Event{Kind: EvFree}, Event{Kind: EvHeld, Text: "x"}, ownFault))
		if w.s.Phase == Waiting && !w.timer && !w.finished { // held: look goes on
			w.queue = append(w.queue, DoLook)
		}
	case DoTake:
		e := pick(Event{Kind: EvTaken, Epoch: 5}, Event{Kind: EvHeld, Text: "x"}, ownFault)
		w.taken = e.Kind == EvTaken
		w.step(e)
	case DoStart:
		w.step(pick(Event{Kind: EvStarted}, Event{Kind: EvFault}))
	case DoClaim:
		e := pick(Event{Kind: EvClaimed}, Event{Kind: EvHigher, Epoch: w.s.Epoch + 1}, Event{Kind: EvFault})
		w.claimed = e.Kind == EvClaimed
		w.step(e)
	case DoRaise:
		w.step(pick(Event{Kind: EvRaised, Epoch: w.s.Epoch + 7}, Event{Kind: EvFault, Cause: coordination.CauseStore, Fault: sdk.Faultf(sdk.CodeFenced, "another")}, ownFault))
	case DoRun:
		switch {
		case w.s.Phase == Opening && rapid.Bool().Draw(w.t, "opens"):
			w.queue = append([]EffectKind{DoRun}, w.queue...)
			w.step(Event{Kind: EvOpened})
		case w.stopping:
			w.step(pick(Event{Kind: EvDrained}, Event{Kind: EvFault}))
		default:
			w.step(pick(Event{Kind: EvEnd}, Event{Kind: EvFault}))
		}
	case DoClose:
		w.live, w.abort = false, false
		w.step(Event{Kind: EvClosed})
	case DoEnd:
		e := pick(Event{Kind: EvWritten}, ownFault)
		if e.Kind == EvFault {
			w.silent++
		}
		w.ended = w.ended || e.Kind == EvWritten
		w.step(e)
	case DoRelease:
		e := pick(Event{Kind: EvReleased}, ownFault, Event{Kind: EvFault, Fault: sdk.Faultf(sdk.CodeFenced, "another's")})
		w.released = e.Kind != EvFault || e.Fault.Code == sdk.CodeFenced
		if e.Kind == EvFault && e.Fault.Code == sdk.CodeFenced {
			w.fenced = true
		}
		w.step(e)
	}
}

func TestLifeCycleProperties(t *testing.T) { properties(t, nil) }

// TestPropertiesCanFail breaks one promise of the machine at a time.
func TestPropertiesCanFail(t *testing.T) {
	checks := flag.Lookup("rapid.checks").Value.String()
	for k, v := range map[string]string{"rapid.nofailfile": "true", "rapid.checks": "20000", "rapid.shrinktime": "0s"} { // it stops at the first failure
		if err := flag.Set(k, v); err != nil {
			t.Fatal(err)
		}
	}
	defer flag.Set("rapid.checks", checks)
	instead := func(of EffectKind, do ...EffectKind) func(Effect) []Effect {
		return func(f Effect) []Effect {
			if f.Kind != of {
				return []Effect{f}
			}
			var out []Effect
			for _, k := range do {
				out = append(out, Effect{Kind: k})
			}
			return out
		}
	}
	for name, m := range map[string]struct {
		mutate func(Effect) []Effect
		want   string
	}{
		"an overlap is not recorded":        {instead(DoOverlap), "no overlap was recorded"},
		"the release comes before the end":  {instead(DoEnd, DoRelease), "before the end was written"},
		"live connectors at the end":        {instead(DoClose, DoFinish), "with live connectors"},
		"the pipeline without a claim":      {instead(DoClaim, DoRun), "without a claim of every writer"},
		"no claim after a raised epoch":     {instead(DoRaise, DoRaise, DoRun), "without a claim of every writer"},
		"the task is taken again":           {instead(DoAudit, DoTake), "took twice"},
		"connectors over those that live":   {instead(DoShow, DoStart), "over live ones"},
		"started after the loss of session": {instead(DoAbort, DoRaise), "after the session was lost"},
	} {
		t.Run(name, func(t *testing.T) {
			q := &quiet{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				properties(q, m.mutate)
			}()
			<-done
			if !strings.Contains(q.text.String(), m.want) {
				t.Fatalf("got %q, want a failure with %q", q.text.String(), m.want)
			}
		})
	}
}

// quiet keeps failures to itself.
type quiet struct {
	rapid.TB
	text strings.Builder
}

func (q *quiet) Logf(string, ...any)       {}
func (q *quiet) Log(...any)                {}
func (q *quiet) Errorf(f string, a ...any) { fmt.Fprintf(&q.text, f, a...) }
func (q *quiet) Fatalf(f string, a ...any) {
	q.Errorf(f, a...)
	runtime.Goexit()
}
func (q *quiet) Fail()        {}
func (q *quiet) FailNow()     { runtime.Goexit() }
func (q *quiet) Failed() bool { return q.text.Len() > 0 }

func properties(t rapid.TB, mutate func(Effect) []Effect) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, s: State{Limits: Limits{Tries: 3, Raises: 2}}, mutate: mutate}
		w.step(Event{Kind: EvStart})
		for range rapid.IntRange(0, 40).Draw(t, "moves") {
			switch rapid.IntRange(0, 9).Draw(t, "move") {
			case 0:
				w.step(Event{Kind: EvStop, Want: rapid.SampledFrom([]Phase{Ended, Paused}).Draw(t, "want")})
			case 1:
				if rapid.IntRange(0, 3).Draw(t, "lost") == 0 {
					w.lost = true
					w.step(Event{Kind: rapid.SampledFrom([]EventKind{EvLost, EvDeadline}).Draw(t, "kind")})
				}
			case 2:
				if w.grace {
					w.grace = false
					w.step(Event{Kind: EvGrace})
				}
			case 3:
				w.step(Event{Kind: EvProgress})
				if w.taken && rapid.IntRange(0, 5).Draw(t, "refused") == 0 {
					w.step(Event{Kind: EvFault, Cause: coordination.CauseStore, Fault: sdk.Faultf(sdk.CodeFenced, "a write beside it was refused")})
				}
			default:
				w.answer()
			}
		}
		w.step(Event{Kind: EvStop, Want: Ended})
		for i := 0; !w.finished; i++ {
			if i > 200 {
				t.Fatalf("stopped, but never ends: %+v, queue %v, timer %v", w.s, w.queue, w.timer)
			}
			w.answer()
		}
		if w.taken && !w.ended && w.silent < 3 {
			t.Fatalf("ended in %s without the journal entry", w.s.Phase)
		}
	})
}
