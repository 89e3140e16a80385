//go:build !faults

package ledger

import "testing"

func TestFromEnv(t *testing.T) {
	t.Setenv("DATALINK_SWITCH", "epoch-off,claim-off,batchno-off,store-off,locks-off,count-off")
	if got := FromEnv(); got != (Switches{}) {
		t.Errorf("a build without the tag faults switched checks off: %+v", got)
	}
}
