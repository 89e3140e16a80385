package failpoint

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHit(t *testing.T) {
	for _, tt := range []struct {
		spec string
		hits []string
		want []string // "kill" or "stop" for each hit that acts, "" for the others
	}{
		{"a", []string{"b", "a", "a"}, []string{"", "kill", ""}},
		{"a:2", []string{"a", "a", "a"}, []string{"", "kill", ""}},
		{"a:stop", []string{"a"}, []string{"stop"}},
		{"a:2:stop,b", []string{"a", "b", "a"}, []string{"", "kill", "stop"}},
	} {
		var did string
		s := &Set{act: func(stop bool) {
			if did = "kill"; stop {
				did = "stop"
			}
		}}
		if err := s.Arm(tt.spec); err != nil {
			t.Fatalf("Arm(%q): %v", tt.spec, err)
		}
		var got []string
		for _, h := range tt.hits {
			did = ""
			s.Hit(h)
			got = append(got, did)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%q, hits %q: (-want +got)\n%s", tt.spec, tt.hits, d)
		}
	}
}

func TestArmRefuses(t *testing.T) {
	for _, spec := range []string{":1", "a:0", "a:x", "a:-1:stop", "a,,b"} {
		if err := new(Set).Arm(spec); err == nil || !strings.Contains(err.Error(), "expected") {
			t.Errorf("Arm(%q) = %v, want an error that says what was expected", spec, err)
		}
	}
}

// TestProcessIsKilled runs this test binary again with an armed fail point.
func TestProcessIsKilled(t *testing.T) {
	if os.Getenv(Env) != "" {
		Hit("test.point")
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=TestProcessIsKilled")
	cmd.Env = []string{Env + "=test.point"}
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("process with an armed fail point ended with %v, want SIGKILL", err)
	}
}

func BenchmarkHitUnarmed(b *testing.B) {
	s := &Set{}
	for b.Loop() {
		s.Hit("a")
	}
}
