//go:build faults

package ledger

import "testing"

func TestFromEnv(t *testing.T) {
	t.Setenv("DATALINK_SWITCH", "epoch-off,other,batchno-off")
	if got, want := FromEnv(), (Switches{EpochOff: true, BatchOff: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
