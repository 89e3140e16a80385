package supervisor

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the Prometheus metrics of all plugins, by task, plugin and
// instance. A nil Metrics counts nothing. It is a prometheus.Collector.
type Metrics struct {
	mu     sync.Mutex
	series map[series]*usage
}

type series struct{ task, plugin, instance string }

// usage of one plugin instance: the sum of its dead processes, and the live one.
type usage struct {
	cpu            time.Duration
	sent, received int64
	live           *Client
	seen           time.Duration // CPU time of the live process when last asked
	state          State
	known          bool // state was told
}

// NewMetrics returns an empty Metrics.
func NewMetrics() *Metrics { return &Metrics{series: map[series]*usage{}} }

var (
	labels   = []string{"task", "plugin", "instance"}
	cpuDesc  = prometheus.NewDesc("datalink_plugin_cpu_seconds_total", "CPU time of the plugin's processes. High with few records: look at the plugin's own log.", labels, nil)
	rssDesc  = prometheus.NewDesc("datalink_plugin_resident_bytes", "Resident memory of the plugin's process, its program included.", labels, nil)
	anonDesc = prometheus.NewDesc("datalink_plugin_anonymous_bytes", "Anonymous resident memory of the plugin's process. Growing without end: lower the window, or restart the task and report it.", labels, nil)
	sentDesc = prometheus.NewDesc("datalink_plugin_sent_bytes_total", "Bytes of messages sent to the plugin.", labels, nil)
	recvDesc = prometheus.NewDesc("datalink_plugin_received_bytes_total", "Bytes of messages received from the plugin.", labels, nil)
	restDesc = prometheus.NewDesc("datalink_plugin_restarts_total", "Starts of the plugin after it had died. Rising: the reason is in the host's log.", labels, nil)
	stateDsc = prometheus.NewDesc("datalink_plugin_state", "1 for the state the plugin is in. quarantined: it died too often, find out why and restart the task.", append(append([]string{}, labels...), "state"), nil)
)

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{cpuDesc, rssDesc, anonDesc, sentDesc, recvDesc, restDesc, stateDsc} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, u := range m.series {
		cpu, sent, received := u.total()
		put := func(d *prometheus.Desc, t prometheus.ValueType, v float64) {
			out <- prometheus.MustNewConstMetric(d, t, v, k.task, k.plugin, k.instance)
		}
		put(cpuDesc, prometheus.CounterValue, cpu.Seconds())
		put(sentDesc, prometheus.CounterValue, float64(sent))
		put(recvDesc, prometheus.CounterValue, float64(received))
		if u.live != nil {
			if mem, err := memoryOf(u.live.PID()); err == nil {
				put(rssDesc, prometheus.GaugeValue, float64(mem.resident))
				put(anonDesc, prometheus.GaugeValue, float64(mem.anonymous))
			}
		}
		if !u.known {
			continue
		}
		put(restDesc, prometheus.CounterValue, float64(u.state.Restarts))
		for p, name := range phaseNames {
			v := 0.0
			if Phase(p) == u.state.Phase {
				v = 1
			}
			out <- prometheus.MustNewConstMetric(stateDsc, prometheus.GaugeValue, v, k.task, k.plugin, k.instance, name)
		}
	}
}

// total adds the live process to the dead ones.
func (u *usage) total() (cpu time.Duration, sent, received int64) {
	cpu, sent, received = u.cpu, u.sent, u.received
	if u.live != nil {
		s, r := u.live.codec.Traffic()
		if now, err := cpuOf(u.live.PID()); err == nil { // else it is ending
			u.seen = now
		}
		cpu, sent, received = cpu+u.seen, sent+s, received+r
	}
	return cpu, sent, received
}

func (m *Metrics) of(c Config) *usage {
	k := series{c.Task, c.Image.Name, c.Instance}
	u := m.series[k]
	if u == nil {
		u = &usage{}
		m.series[k] = u
	}
	return u
}

// started adds a process; the result takes it away when it has ended.
func (m *Metrics) started(c *Client) (ended func()) {
	if m == nil {
		return func() {}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.of(c.cfg)
	u.live, u.seen = c, 0
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		u := m.of(c.cfg)
		s, r := c.codec.Traffic()
		u.sent, u.received = u.sent+s, u.received+r
		if st := c.proc.state; st != nil {
			u.cpu += st.UserTime() + st.SystemTime()
		}
		if u.live == c {
			u.live = nil
		}
	}
}

func (m *Metrics) changed(c Config, s State) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.of(c.withDefaults())
	u.state, u.known = s, true
}
