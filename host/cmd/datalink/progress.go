package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/sys/unix"

	"github.com/datalink-go/datalink/host/daemon"
)

// progressEvery is how often a line is written where there is no terminal.
const progressEvery = 5 * time.Second

// progress shows how a run goes on: a bar that moves on a terminal, lines
// elsewhere. Show and end are called by one goroutine.
type progress struct {
	w    io.Writer
	task string
	last time.Time
	bars *mpb.Progress
	bar  *mpb.Bar
	text atomic.Value // string, for the bar
}

func newProgress(w io.Writer, task string) *progress {
	p := &progress{w: w, task: task, last: time.Now()}
	p.text.Store("")
	f, ok := w.(*os.File)
	if !ok || !terminal(f) {
		return p
	}
	p.bars = mpb.New(mpb.WithOutput(f), mpb.WithRefreshRate(150*time.Millisecond))
	p.bar = p.bars.New(0, mpb.SpinnerStyle(), mpb.BarWidth(1),
		mpb.PrependDecorators(decor.Name(task+" ")),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return p.text.Load().(string) })))
	return p
}

// terminal reports whether f is one.
func terminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// show takes a moment of the run.
func (p *progress) show(m daemon.Moment) {
	text := describe(m)
	if p.bar != nil {
		p.text.Store(text)
		return
	}
	if time.Since(p.last) >= progressEvery {
		p.last = time.Now()
		fmt.Fprintf(p.w, "%s %s\n", p.task, text)
	}
}

func describe(m daemon.Moment) string {
	c := m.Reading.Counts
	s := fmt.Sprintf("%s %s: read %d, written %d", m.Phase, m.Elapsed.Round(time.Second), c.Read, c.Written)
	if c.Skipped > 0 {
		s += fmt.Sprintf(", skipped %d", c.Skipped)
	}
	if c.DeadLettered > 0 {
		s += fmt.Sprintf(", dead-lettered %d", c.DeadLettered)
	}
	if sec := m.Elapsed.Seconds(); sec >= 1 {
		s += fmt.Sprintf(", %.0f records/s", float64(c.Read)/sec)
	}
	if m.Reading.Lag > 0 {
		s += fmt.Sprintf(", %s of source time to write", m.Reading.Lag.Round(time.Millisecond))
	}
	if m.Reason != "" {
		s += " (" + m.Reason + ")"
	}
	return s
}

// end removes the bar.
func (p *progress) end() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bars.Wait()
	}
}
