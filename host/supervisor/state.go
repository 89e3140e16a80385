package supervisor

import "time"

// Phase is where a plugin is in its life.
type Phase uint8

// The phases.
const (
	Stopped     Phase = iota // nothing runs, nothing is wanted
	Starting                 // a process is being started and configured
	Ready                    // it serves calls
	Draining                 // it is asked to end
	BackOff                  // it died; the next start waits
	Quarantined              // it died too often, or will never start: an operator has to look
)

var phaseNames = [...]string{"stopped", "starting", "ready", "draining", "back-off", "quarantined"}

// String returns the phase in lower case.
func (p Phase) String() string { return phaseNames[p] }

// Policy says how often a plugin may die. Zero fields have the defaults.
type Policy struct {
	Min    time.Duration // first delay; 0 = 1 s
	Max    time.Duration // longest delay; 0 = 5 min
	Stable time.Duration // Ready that long counts as recovered; 0 = 1 min
	Deaths int           // that many within Window quarantine it; 0 = 10
	Window time.Duration // 0 = 10 min
}

func (p Policy) withDefaults() Policy {
	for _, d := range []struct {
		v *time.Duration
		d time.Duration
	}{{&p.Min, time.Second}, {&p.Max, 5 * time.Minute}, {&p.Stable, time.Minute}, {&p.Window, 10 * time.Minute}} {
		if *d.v <= 0 {
			*d.v = d.d
		}
	}
	if p.Deaths <= 0 {
		p.Deaths = 10
	}
	return p
}

// State is that of one plugin instance. It changes by Step alone.
type State struct {
	Phase    Phase
	Wanted   bool            // a process should run
	Alive    bool            // one may run
	Attempt  int             // deaths since the plugin was last stable
	Since    time.Duration   // when the phase began
	Deaths   []time.Duration // those within the window
	Restarts int             // starts after a death, in all
	Reason   string          // of the phase, for messages
}

// EventKind is what happened.
type EventKind uint8

// The events.
const (
	Want     EventKind = iota // a process is wanted
	Unwant                    // none is wanted any more: drain and stop
	Started                   // the process is configured and serves
	Failed                    // the start came to nothing, worth another try
	Hopeless                  // the start came to nothing and always will
	Died                      // the process ended by itself
	Charged                   // so it did, with blocks in hand: the pipeline finds the one to blame
	Ended                     // the process ended as it was told to
	Expired                   // the delay is over
	Reset                     // an operator lifts the quarantine
)

var eventNames = [...]string{"want", "unwant", "started", "failed", "hopeless", "died", "charged", "ended", "expired", "reset"}

// String returns the event in lower case.
func (k EventKind) String() string { return eventNames[k] }

// Event is one input of Step.
type Event struct {
	Kind   EventKind
	At     time.Duration // on a clock that never goes back
	Random float64       // in [0, 1), for the jitter
	Reason string
}

// EffectKind is what is to be done.
type EffectKind uint8

// The effects.
const (
	Launching EffectKind = iota // start a process: Started, Failed or Hopeless follows
	Closing                     // close it and see that it ends: Ended follows
	Waiting                     // wait for Delay: Expired follows, unless another effect comes first
	Telling                     // those who wait for a process look again
)

var effectNames = [...]string{"launch", "close", "wait", "tell"}

// String returns the effect in lower case.
func (k EffectKind) String() string { return effectNames[k] }

// Effect is one output of Step.
type Effect struct {
	Kind  EffectKind
	Delay time.Duration
}

// Step is the whole of the supervision: it says what follows from an event, and
// does nothing itself. An event that does not fit the state changes nothing.
func (p Policy) Step(s State, e Event) (State, []Effect) {
	p = p.withDefaults()
	s.Deaths = append([]time.Duration(nil), s.Deaths...)
	before := s.Phase
	effects := p.step(&s, e)
	if s.Phase != before {
		s.Since, s.Reason = e.At, e.Reason
		effects = append(effects, Effect{Kind: Telling})
	}
	return s, effects
}

func (p Policy) step(s *State, e Event) []Effect {
	switch e.Kind {
	case Want:
		s.Wanted = true
		if s.Phase == Stopped {
			return s.launch()
		}
	case Unwant:
		s.Wanted = false
		switch s.Phase {
		case Starting, Ready:
			s.Phase = Draining
			return []Effect{{Kind: Closing}}
		case BackOff, Quarantined:
			s.Phase, s.Attempt, s.Deaths = Stopped, 0, nil
		}
	case Started:
		if s.Phase == Starting {
			s.Phase = Ready
		}
	case Failed, Died, Hopeless:
		if s.Phase == Draining {
			return s.ended()
		}
		if s.Phase == Ready && e.Kind == Died || s.Phase == Starting {
			return p.died(s, e)
		}
	case Charged:
		// The search for a poisonous record needs a dozen deaths in a row: they are
		// neither counted nor made to wait. The pipeline has its own back-off and
		// ends the search with that record.
		switch s.Phase {
		case Draining:
			return s.ended()
		case Ready:
			s.Alive = false
			s.Restarts++
			return s.launch()
		}
	case Ended:
		if s.Phase == Draining {
			return s.ended()
		}
	case Expired:
		if s.Phase == BackOff {
			s.Restarts++
			return s.launch()
		}
	case Reset:
		if s.Phase == Quarantined {
			s.Attempt, s.Deaths = 0, nil
			s.Restarts++
			return s.launch()
		}
	}
	return nil
}

func (s *State) launch() []Effect {
	s.Phase, s.Alive = Starting, true
	return []Effect{{Kind: Launching}}
}

// ended is reached from Draining: somebody may want the plugin again by now.
func (s *State) ended() []Effect {
	s.Phase, s.Alive, s.Attempt, s.Deaths = Stopped, false, 0, nil
	if s.Wanted {
		return s.launch()
	}
	return nil
}

func (p Policy) died(s *State, e Event) []Effect {
	if s.Phase == Ready && e.At-s.Since >= p.Stable {
		s.Attempt = 0
	}
	s.Alive = false
	s.Attempt++
	s.Deaths = append(s.Deaths, e.At)
	for len(s.Deaths) > 0 && s.Deaths[0] < e.At-p.Window {
		s.Deaths = s.Deaths[1:]
	}
	if e.Kind == Hopeless || len(s.Deaths) >= p.Deaths {
		s.Phase = Quarantined
		return nil
	}
	s.Phase = BackOff
	return []Effect{{Kind: Waiting, Delay: p.delay(s.Attempt, e.Random)}}
}

// delay doubles from Min up to Max. The upper half of it is random, so that many
// plugins that died of one cause do not come back at one moment.
func (p Policy) delay(attempt int, random float64) time.Duration {
	d := p.Max
	if shift := attempt - 1; shift < 30 && p.Min<<shift < p.Max {
		d = p.Min << shift
	}
	return max(p.Min, d/2+time.Duration(float64(d/2)*random))
}
