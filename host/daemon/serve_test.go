package daemon

import (
	"testing"

	"github.com/datalink-go/datalink/coordination"
)

// keep must not start a task between the end of its run and the judgement of it:
// an ended or failed one would run once more at once. A start would fail this test
// by a nil store.
func TestKeepWaitsForJudgement(t *testing.T) {
	d := coordination.Definition{Name: "orders", UID: "u1", Version: 1, Desired: coordination.Running}
	k := &keeper{def: d, running: true}
	n := &Node{keepers: newKeepers(), runs: map[string]*run{}}
	n.keepers.all[d.Name] = k
	if wait := n.keep(d); wait != 0 {
		t.Errorf("wait %s, want none", wait)
	}
	res := Result{}
	res.Outcome.Pipeline.Ended = true
	n.finished(k, d, res)
	if k.running || k.ended != d.Version {
		t.Errorf("running %t, ended %d after the end; want false, %d", k.running, k.ended, d.Version)
	}
	n.keep(d) // its source has ended: not started
}

// What is known of a deleted task does not hold for another of its name.
func TestKeepOtherTaskOfTheName(t *testing.T) {
	old := coordination.Definition{Name: "orders", UID: "u1", Version: 1, Desired: coordination.Running}
	n := &Node{keepers: newKeepers(), runs: map[string]*run{}}
	n.keepers.all["orders"] = &keeper{def: old, ended: 1, reason: "the source has ended"}
	again := old
	again.UID, again.Desired = "u2", coordination.Paused // so that nothing is started here
	n.keep(again)
	if k := n.keepers.all["orders"]; k.ended != 0 || k.def.UID != "u2" {
		t.Errorf("kept ended %d of task %s, want none of u2", k.ended, k.def.UID)
	}
}
