package clustertest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/datalink-go/datalink/coordination"
)

// journal is what the test knows of all executions: from the tasks' journals, which
// are trimmed and therefore read again and again, and from what it did itself.
type journal struct {
	r     *rig
	tasks []string
	all   map[string]*execution
}

// execution is one of a task. Sequence numbers are those of the journal, 0 = not
// there.
type execution struct {
	task, id, worker string
	started, ended   uint64
	killed           bool // its worker was killed while it was the last of its task
	unknown          bool // it is not known whether it was
}

func newJournal(r *rig, tasks []string) *journal {
	return &journal{r: r, tasks: tasks, all: map[string]*execution{}}
}

// read takes in what the journals have; it asks any worker that answers.
func (j *journal) read() error {
	var last error
	for _, w := range j.r.workers {
		if last = j.readFrom(w); last == nil {
			return nil
		}
	}
	return last
}

func (j *journal) readFrom(w *worker) error {
	if !w.lives() {
		return fmt.Errorf("worker %s does not live", w.name)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	for _, name := range j.tasks {
		t, err := w.client().Task(ctx, name)
		if err != nil {
			return err
		}
		for _, e := range t.Executions {
			x := j.all[e.ExecutionID]
			if x == nil {
				x = &execution{task: name, id: e.ExecutionID}
				j.all[e.ExecutionID] = x
			}
			switch e.Kind {
			case coordination.EntryStarted:
				x.started, x.worker = e.Seq, e.Worker
			case coordination.EntryEnded:
				x.ended = e.Seq
			}
		}
	}
	return nil
}

// killed notes that a worker's processes are gone. What was the last execution of a
// task then overlaps with nothing that comes later.
func (j *journal) killed(worker string) {
	err := j.read()
	for _, x := range j.all {
		switch {
		case x.worker != worker || x.ended != 0:
		case err != nil:
			x.unknown = true
		case j.next(x) == nil:
			x.killed = true
		}
	}
}

// next is the execution of the same task that started after x.
func (j *journal) next(x *execution) (first *execution) {
	for _, y := range j.all {
		if y.task == x.task && y.started > x.started && (first == nil || y.started < first.started) {
			first = y
		}
	}
	return first
}

// overlapped are the executions that had not ended when another of their task began.
func (j *journal) overlapped() (out []*execution) {
	for _, x := range j.all {
		if n := j.next(x); x.started != 0 && n != nil && !x.killed && (x.ended == 0 || x.ended > n.started) {
			out = append(out, x)
		}
	}
	slices.SortFunc(out, func(a, b *execution) int { return strings.Compare(a.id, b.id) })
	return out
}

// judge compares what overlapped with the audit's records.
func (j *journal) judge(records []coordination.Overlap) (wrong []string) {
	recorded := map[string]bool{}
	for _, o := range records {
		recorded[o.Late.ExecutionID] = true
	}
	caused := map[string]bool{}
	for _, x := range j.overlapped() {
		caused[x.id] = true
		if !recorded[x.id] && !x.unknown {
			wrong = append(wrong, fmt.Sprintf("execution %s of %s at %s had not ended when the next began, and the audit says nothing of it", x.id, x.task, x.worker))
		}
	}
	for _, o := range records {
		x := j.all[o.Late.ExecutionID]
		if o.Certain && !caused[o.Late.ExecutionID] && (x == nil || !x.unknown) {
			wrong = append(wrong, fmt.Sprintf("the audit is certain that execution %s of %s overlapped, and it did not (%+v): %+v", o.Late.ExecutionID, o.Task, x, o))
		}
	}
	return wrong
}
