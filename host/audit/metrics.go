package audit

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/datalink-go/datalink/coordination"
)

// Metrics counts overlap records; its Notify is for Config.
type Metrics struct{ overlaps *prometheus.CounterVec }

// NewMetrics registers the counters.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{overlaps: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "datalink_overlaps_total",
		Help: "Overlaps of two executions of a task that were recorded. When it rises: datalink audit list; certain ones point to stalls longer than the session time-out or to two stores on one target.",
	}, []string{"cause", "verdict"})}
	if err := r.Register(m.overlaps); err != nil {
		return nil, err
	}
	return m, nil
}

// Notify counts a record.
func (m *Metrics) Notify(o coordination.Overlap) {
	m.overlaps.WithLabelValues(string(o.Cause), string(o.Verdict)).Inc()
}
