package stack

import "testing"

func TestEnsembleHasALeaderAgainAfterAKill(t *testing.T) {
	e := StartEnsemble(t, 3, "forceSync=no")
	old := e.Leader()
	old.Kill()
	old.Restart()
	e.Await()
	if e.Follower() == nil {
		t.Error("no server follows")
	}
}
