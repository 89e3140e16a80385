package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/datalink-go/datalink/coordination"
)

// Channels are where alerts go beside the log, which always gets them.
type Channels struct {
	Webhook string   // URL that gets a POST with the alert as JSON; "" = none
	Headers []Header // of the webhook
	Command []string // program with arguments that gets the alert as JSON on stdin; nil = none
	// Timeout bounds one try; 0 = 10 s.
	Timeout time.Duration
	// Retry is the pause after the first failed try, doubled with each; 0 = 1 s.
	Retry time.Duration
	// Tries bounds them; 0 = 8.
	Tries int
}

// Header is a header of the webhook, such as Authorization.
type Header struct{ Name, Value string }

// Alert is what a channel gets.
type Alert struct {
	ID      string                `json:"id"` // the same for the same alert, however often it is sent
	Kind    string                `json:"kind"`
	Text    string                `json:"text"`
	At      time.Time             `json:"at"`
	Overlap *coordination.Overlap `json:"overlap,omitempty"`
}

// Alerts sends alerts: each once to each channel, again while that fails, in the
// order they came. It never holds up who reports.
type Alerts struct {
	cfg    Channels
	log    *slog.Logger
	sent   *prometheus.CounterVec
	queue  chan Alert
	done   chan struct{}
	cancel context.CancelFunc
	client *http.Client

	mu     sync.Mutex
	seen   map[string]bool
	order  []string // of seen, the oldest first
	closed bool
}

// maxSeen bounds what is remembered to tell repetitions.
const maxSeen = 4096

// NewAlerts starts the sender.
func NewAlerts(cfg Channels, reg prometheus.Registerer, log *slog.Logger) (*Alerts, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.Retry <= 0 {
		cfg.Retry = time.Second
	}
	if cfg.Tries <= 0 {
		cfg.Tries = 8
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a := &Alerts{
		cfg: cfg, log: log, queue: make(chan Alert, 1024), done: make(chan struct{}), cancel: cancel, client: &http.Client{}, seen: map[string]bool{},
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "datalink_alerts_total",
			Help: "Alerts by channel and outcome. outcome=lost above 0: the channel does not take them, see the log and `datalink audit test-alert`.",
		}, []string{"channel", "outcome"}),
	}
	if reg != nil {
		if err := reg.Register(a.sent); err != nil {
			cancel()
			return nil, err
		}
	}
	go a.run(ctx)
	return a, nil
}

// Overlap reports a record.
func (a *Alerts) Overlap(o coordination.Overlap) {
	text := fmt.Sprintf("task %s: two executions ran at the same time (%s)", o.Task, o.Verdict)
	if !o.Certain {
		text = fmt.Sprintf("task %s: two executions may have run at the same time (%s)", o.Task, o.Verdict)
	}
	a.add(Alert{ID: o.ID, Kind: "overlap", Text: text + "; datalink audit show " + o.ID, At: o.At, Overlap: &o})
}

func (a *Alerts) add(al Alert) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.seen[al.ID] {
		return
	}
	a.seen[al.ID] = true
	a.order = append(a.order, al.ID)
	if len(a.order) > maxSeen {
		delete(a.seen, a.order[0])
		a.order = slices.Delete(a.order, 0, 1)
	}
	select {
	case a.queue <- al:
	default:
		a.log.Error("alert is dropped: too many wait", "id", al.ID, "text", al.Text)
		a.sent.WithLabelValues("all", "lost").Inc()
	}
}

func (a *Alerts) run(ctx context.Context) {
	defer close(a.done)
	for al := range a.queue {
		a.log.Warn("alert", "id", al.ID, "kind", al.Kind, "text", al.Text)
		var wg sync.WaitGroup
		for _, c := range a.channels() {
			wg.Go(func() {
				if err := a.deliver(ctx, c, al); err != nil {
					a.log.Error("alert could not be delivered", "channel", c.name, "id", al.ID, "cause", err)
					a.sent.WithLabelValues(c.name, "lost").Inc()
					return
				}
				a.sent.WithLabelValues(c.name, "sent").Inc()
			})
		}
		wg.Wait()
	}
}

type channel struct {
	name string
	send func(ctx context.Context, body []byte) error
}

func (a *Alerts) channels() []channel {
	var out []channel
	if a.cfg.Webhook != "" {
		out = append(out, channel{"webhook", a.webhook})
	}
	if len(a.cfg.Command) > 0 {
		out = append(out, channel{"command", a.command})
	}
	return out
}

// deliver tries until it works, the tries are over, or ctx ends.
func (a *Alerts) deliver(ctx context.Context, c channel, al Alert) error {
	body, err := json.Marshal(al)
	if err != nil {
		return err
	}
	pause := a.cfg.Retry
	for try := 1; ; try++ {
		once, cancel := context.WithTimeout(ctx, a.cfg.Timeout)
		err := c.send(once, body)
		cancel()
		if err == nil {
			return nil
		}
		if try >= a.cfg.Tries || ctx.Err() != nil {
			return fmt.Errorf("%s, after %d tries: %w", c.name, try, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause *= 2
	}
}

func (a *Alerts) webhook(ctx context.Context, body []byte) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, a.cfg.Webhook, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	for _, h := range a.cfg.Headers {
		q.Header.Set(h.Name, h.Value)
	}
	r, err := a.client.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, 64<<10))
	if r.StatusCode/100 != 2 {
		return fmt.Errorf("answered %s, expected a 2xx", r.Status)
	}
	return nil
}

func (a *Alerts) command(ctx context.Context, body []byte) error {
	c := exec.CommandContext(ctx, a.cfg.Command[0], a.cfg.Command[1:]...)
	c.Stdin = bytes.NewReader(append(body, '\n'))
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	if err != nil {
		if len(out) > 512 {
			out = out[:512]
		}
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// Tested is what became of a test alert at a channel.
type Tested struct {
	Channel string `json:"channel"`
	OK      bool   `json:"ok"`
	Error   string `json:"error,omitempty"`
}

// Test sends an alert that says that it is a test to every channel, once each, and
// reports what came of it.
func (a *Alerts) Test(ctx context.Context, id string) []Tested {
	al := Alert{ID: id, Kind: "test", Text: "a test alert, sent by `datalink audit test-alert`; nothing is wrong", At: time.Now().UTC()}
	a.log.Warn("alert", "id", al.ID, "kind", al.Kind, "text", al.Text)
	out := []Tested{{Channel: "log", OK: true}}
	body, err := json.Marshal(al)
	for _, c := range a.channels() {
		t := Tested{Channel: c.name}
		e := err
		if e == nil {
			once, cancel := context.WithTimeout(ctx, a.cfg.Timeout)
			e = c.send(once, body)
			cancel()
		}
		if t.OK = e == nil; e != nil {
			t.Error = e.Error()
		}
		out = append(out, t)
	}
	return out
}

// Close sends what waits, within two seconds, and stops.
func (a *Alerts) Close() {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return
	}
	a.closed = true
	close(a.queue)
	a.mu.Unlock()
	select {
	case <-a.done:
	case <-time.After(2 * time.Second):
		a.cancel()
		<-a.done
	}
	a.cancel()
}

// ErrNoChannel says that alerts go to the log alone.
var ErrNoChannel = errors.New("no alert channel is configured: alerts go to the log alone")
