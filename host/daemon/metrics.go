package daemon

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/pipeline"
	"github.com/datalink-go/datalink/host/supervisor"
	"github.com/datalink-go/datalink/host/task"
	"github.com/datalink-go/datalink/sdk"
)

// metrics are the Prometheus metrics of a node. Labels are bounded by the number
// of tasks and writers.
type metrics struct {
	plugins  *supervisor.Metrics
	records  *prometheus.CounterVec
	written  *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	restarts *prometheus.CounterVec
	commit   *prometheus.GaugeVec
	phase    *prometheus.GaugeVec
	overlaps *prometheus.CounterVec
}

func newMetrics(r *prometheus.Registry) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		plugins: supervisor.NewMetrics(),
		records: counter("datalink_task_read_records_total", "Records read and what became of them before any writer. Standing still while the source changes: look at datalink_task_phase.", "task", "outcome"),
		written: counter("datalink_writer_records_total", "Records by outcome at a writer. Dead letters rising: datalink task dead-letters TASK.", "task", "writer", "outcome"),
		bytes:   counter("datalink_task_read_bytes_total", "Bytes of packed blocks read.", "task"),
		restarts: counter("datalink_task_connector_restarts_total", "Connectors replaced or streams begun anew. Rising: the reason is in the log.",
			"task", "connector"),
		commit:   gauge("datalink_writer_last_commit_timestamp_seconds", "Source commit time of the newest transaction stored by a writer. Far behind now: the writer is slow, or the source is quiet.", "task", "writer"),
		phase:    gauge("datalink_task_phase", "1 for the phase a task is in. failed or fenced: datalink task show TASK says why.", "task", "phase"),
		overlaps: counter("datalink_overlaps_total", "Overlapping executions recorded. More than 0: datalink audit list.", "task", "verdict"),
	}
	r.MustRegister(m.plugins, m.records, m.written, m.bytes, m.restarts, m.commit, m.phase, m.overlaps,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) overlap(o coordination.Overlap) {
	m.overlaps.WithLabelValues(o.Task, string(o.Verdict)).Inc()
}

var phases = []task.Phase{
	task.Waiting, task.Taking, task.Starting, task.Claiming, task.Opening, task.Running, task.Draining, task.Closing, task.Retrying,
	task.Ended, task.Paused, task.Failed, task.Fenced,
}

func (m *metrics) show(name string, now task.Phase) {
	for _, p := range phases {
		v := 0.0
		if p == now {
			v = 1
		}
		m.phase.WithLabelValues(name, string(p)).Set(v)
	}
}

// forget removes a deleted task's series.
func (m *metrics) forget(name string) {
	match := prometheus.Labels{"task": name}
	for _, v := range []interface{ DeletePartialMatch(prometheus.Labels) int }{m.records, m.written, m.bytes, m.restarts, m.commit, m.phase} {
		v.DeletePartialMatch(match)
	}
}

// counted is the observer of one task.
type counted struct {
	m    *metrics
	task string
}

var _ pipeline.Observer = counted{}

// Read implements pipeline.Observer.
func (c counted) Read(records, bytes int, _ sdk.Position, _ int64) {
	c.m.records.WithLabelValues(c.task, "read").Add(float64(records))
	c.m.bytes.WithLabelValues(c.task).Add(float64(bytes))
}

// Filtered implements pipeline.Observer.
func (c counted) Filtered(writer string, records int) {
	if writer == "" {
		c.m.records.WithLabelValues(c.task, "filtered").Add(float64(records))
		return
	}
	c.m.written.WithLabelValues(c.task, writer, "filtered").Add(float64(records))
}

// Acked implements pipeline.Observer.
func (c counted) Acked(writer string, counts []pipeline.Count, committed int64, _ sdk.Position) {
	n := 0
	for _, x := range counts {
		n += x.Inserted + x.Updated + x.Deleted
	}
	c.m.written.WithLabelValues(c.task, writer, "written").Add(float64(n))
	if committed > 0 {
		c.m.commit.WithLabelValues(c.task, writer).Set(float64(committed) / 1e6)
	}
}

// Skipped implements pipeline.Observer.
func (c counted) Skipped(writer string, records int) {
	c.m.written.WithLabelValues(c.task, writer, "skipped").Add(float64(records))
}

// DeadLettered implements pipeline.Observer.
func (c counted) DeadLettered(writer string, _ sdk.DeadLetter) {
	c.m.written.WithLabelValues(c.task, writer, "dead-lettered").Inc()
}

// Restarted implements pipeline.Observer.
func (c counted) Restarted(name string, _ error) { c.m.restarts.WithLabelValues(c.task, name).Inc() }
