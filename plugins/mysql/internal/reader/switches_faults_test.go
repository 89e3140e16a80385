//go:build faults

package reader

import "testing"

func TestSwitchesFromEnv(t *testing.T) {
	t.Setenv("DATALINK_SWITCH", "mysql-end-off,other,mysql-purged-off")
	if got, want := switchesFromEnv(), (Switches{EndOff: true, PurgedOff: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
