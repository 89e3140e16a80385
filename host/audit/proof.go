package audit

import (
	"fmt"
	"time"

	"github.com/datalink-go/datalink/coordination"
)

// Proof is why an execution counts as dead. Reason is empty where there is none.
// Pending says that its process is at an end, but that what the execution sent may
// still be on its way until At.
type Proof struct {
	Reason  string
	Pending bool
	At      time.Time
}

// Evidence is what executions are judged by.
type Evidence struct {
	Self      coordination.Place
	LockSince time.Time // when this process got its lock, or later
	Workers   []coordination.Worker
	Forgotten []coordination.Forgotten
	TCP       time.Duration // TCP user time-out of the connectors
	Now       time.Time
}

// Judge looks for a proof that nothing of the execution lives.
func Judge(e *Execution, ev Evidence) Proof {
	place := e.Started.Place
	if e.Ended != nil {
		p := Proof{Reason: "it reported its own end: " + e.Ended.Reason, At: e.Ended.At}
		if e.Ended.Unanswered {
			p.At = p.At.Add(ev.TCP)
			p.Pending = p.At.After(ev.Now)
		}
		return p
	}
	for _, f := range ev.Forgotten {
		if f.Worker == e.Started.Worker && !f.At.Before(e.Started.At) {
			return Proof{Reason: fmt.Sprintf("worker %q was forgotten at %s", f.Worker, f.At.UTC().Format(time.RFC3339)), At: f.At}
		}
	}
	if other, ok := rebooted(place, ev); ok {
		return Proof{Reason: fmt.Sprintf("host %s has boot id %s now, the execution ran under %s", place.Host, other, place.BootID), At: ev.Now}
	}
	if ev.Self.Succeeds(place) {
		at := ev.LockSince.Add(ev.TCP)
		p := Proof{Reason: "the lock of its data directory was obtained again", Pending: at.After(ev.Now), At: at}
		return p
	}
	return Proof{}
}

// rebooted looks for a live process on the host that has another boot id.
func rebooted(place coordination.Place, ev Evidence) (string, bool) {
	if place.Host == "" || place.BootID == "" {
		return "", false
	}
	places := []coordination.Place{ev.Self}
	for _, w := range ev.Workers {
		places = append(places, w.Place)
	}
	other := ""
	for _, p := range places {
		switch {
		case p.Host != place.Host || p.BootID == "":
		case p.BootID == place.BootID:
			return "", false // two machines of one name prove nothing
		default:
			other = p.BootID
		}
	}
	return other, other != ""
}
