package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
)

// Env is the environment variable that arms the fail points of a process.
const Env = "DATALINK_FAILPOINT"

// Set is a set of armed fail points; the zero value has none. It is safe for
// concurrent use.
type Set struct {
	points atomic.Pointer[map[string]*point]
	act    func(stop bool) // tests
}

type point struct {
	left atomic.Int64
	stop bool
}

var process = fromEnv()

func fromEnv() *Set {
	s := &Set{act: act}
	if spec := os.Getenv(Env); spec != "" {
		if err := s.Arm(spec); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", Env, err)
			os.Exit(2)
		}
	}
	return s
}

// Hit kills or stops the process if the fail point is armed and this is the
// counted hit.
func Hit(name string) { process.Hit(name) }

// Armed reports whether any fail point of this process is armed.
func Armed() bool { return process.points.Load() != nil }

// Arm adds fail points to those of the process.
func Arm(specs ...string) error {
	for _, s := range specs {
		if err := process.Arm(s); err != nil {
			return err
		}
	}
	return nil
}

// Arm adds the fail points of a specification, NAME[:COUNT][:stop] separated by
// commas.
func (s *Set) Arm(spec string) error {
	next := map[string]*point{}
	if old := s.points.Load(); old != nil {
		for k, v := range *old {
			next[k] = v
		}
	}
	for part := range strings.SplitSeq(spec, ",") {
		name, rest, _ := strings.Cut(part, ":")
		p := &point{}
		p.left.Store(1)
		if rest == "stop" || strings.HasSuffix(rest, ":stop") {
			p.stop, rest = true, strings.TrimSuffix(strings.TrimSuffix(rest, "stop"), ":")
		}
		if rest != "" {
			n, err := strconv.ParseInt(rest, 10, 64)
			if err != nil || n < 1 {
				return fmt.Errorf("fail point %q: count %q, expected a number of 1 or more", part, rest)
			}
			p.left.Store(n)
		}
		if name == "" {
			return fmt.Errorf("fail point %q: no name, expected NAME[:COUNT][:stop]", part)
		}
		next[name] = p
	}
	s.points.Store(&next)
	return nil
}

// Hit is what the function Hit does, for this set.
func (s *Set) Hit(name string) {
	points := s.points.Load()
	if points == nil {
		return
	}
	if p := (*points)[name]; p != nil && p.left.Add(-1) == 0 {
		s.act(p.stop)
	}
}
