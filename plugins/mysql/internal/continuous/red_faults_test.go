//go:build faults

package continuous

import "testing"

// TestGoesRed breaks one guarantee of the reader at a time: each must be noticed, with
// the sixth seed at the latest.
func TestGoesRed(t *testing.T) {
	for _, name := range []string{"mysql-stale-layout", "mysql-layouts-lost", "mysql-covers-off", "mysql-prepared-lost"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DATALINK_SWITCH", name)
			s := servers[0]
			for k := range uint64(6) {
				if err := overConnection(t, s.kind, s.which, s.options, seed()+k); err != nil {
					t.Logf("noticed: %.500v", err)
					return
				}
			}
			t.Error("nothing was noticed")
		})
	}
}
