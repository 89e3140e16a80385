package supervisor

// Metrics are the Prometheus metrics of all plugins.
type Metrics struct{}

func (m *Metrics) started(*Client) func() { return nil }
