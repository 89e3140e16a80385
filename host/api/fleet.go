package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/datalink-go/datalink/host/audit"
)

// Fleet is what a daemon can be asked about the workers that share its store. A
// node that is alone is a fleet of one.
type Fleet interface {
	Workers(ctx context.Context) ([]Worker, error)
	// Drain lets a worker hand over all it runs and get nothing more, or ends that.
	Drain(ctx context.Context, worker string, on bool) ([]Worker, error)
	// Forget records an operator's word that nothing of a worker lives any more.
	Forget(ctx context.Context, worker string) error
	Groups(ctx context.Context) ([]Group, error)
	// Rebalance evens out a group's load once, whatever was moved before.
	Rebalance(ctx context.Context, group string) error
	// TestAlert sends a test to every alert channel of the worker that is asked.
	TestAlert(ctx context.Context) ([]audit.Tested, error)
}

// Worker is a worker as commands show it.
type Worker struct {
	ID       string    `json:"id"`
	State    string    `json:"state"` // active, draining, leaving, gone
	Leader   bool      `json:"leader"`
	Groups   []string  `json:"groups"`
	Host     string    `json:"host"`
	PID      int       `json:"pid"`
	JoinedAt time.Time `json:"joinedAt,omitzero"`
	Tasks    []string  `json:"tasks"` // that the plan gives to it
	Running  int       `json:"running"`
	Plugins  []string  `json:"plugins,omitempty"`
}

// Group is a group of tasks and the workers that may run them.
type Group struct {
	Name    string            `json:"name"`
	Workers []string          `json:"workers"`
	Tasks   int               `json:"tasks"`
	Waiting map[string]string `json:"waiting,omitempty"` // tasks that are nowhere, and why
}

type drain struct {
	On bool `json:"on"`
}

func fleetRoutes(b Fleet) []route {
	worker := func(r *http.Request) string { return r.PathValue("worker") }
	return []route{
		call0("GET", "/v1/workers", "list workers and what they run", func(r *http.Request) ([]Worker, error) { return b.Workers(r.Context()) }),
		call1("POST", "/v1/workers/{worker}/drain", "let a worker hand over all its tasks, or end that", func(r *http.Request, q drain) ([]Worker, error) {
			return b.Drain(r.Context(), worker(r), q.On)
		}),
		call0("POST", "/v1/workers/{worker}/forget", "say that nothing of a worker that is gone lives", func(r *http.Request) (nothing, error) {
			return nothing{}, b.Forget(r.Context(), worker(r))
		}),
		call0("GET", "/v1/groups", "list groups of tasks and workers", func(r *http.Request) ([]Group, error) { return b.Groups(r.Context()) }),
		call0("POST", "/v1/groups/{group}/rebalance", "even out the load of a group's workers now", func(r *http.Request) (nothing, error) {
			return nothing{}, b.Rebalance(r.Context(), r.PathValue("group"))
		}),
		call0("POST", "/v1/audit/test-alert", "send a test to every alert channel of this worker", func(r *http.Request) ([]audit.Tested, error) { return b.TestAlert(r.Context()) }),
	}
}

// Workers implements Fleet.
func (c *Client) Workers(ctx context.Context) ([]Worker, error) {
	return get[[]Worker](ctx, c, "GET", "/v1/workers", nil)
}

// Drain implements Fleet.
func (c *Client) Drain(ctx context.Context, worker string, on bool) ([]Worker, error) {
	return get[[]Worker](ctx, c, "POST", "/v1/workers/"+url.PathEscape(worker)+"/drain", drain{on})
}

// Forget implements Fleet.
func (c *Client) Forget(ctx context.Context, worker string) error {
	return c.do(ctx, "POST", "/v1/workers/"+url.PathEscape(worker)+"/forget", nil, nil)
}

// Groups implements Fleet.
func (c *Client) Groups(ctx context.Context) ([]Group, error) {
	return get[[]Group](ctx, c, "GET", "/v1/groups", nil)
}

// Rebalance implements Fleet.
func (c *Client) Rebalance(ctx context.Context, group string) error {
	return c.do(ctx, "POST", "/v1/groups/"+url.PathEscape(group)+"/rebalance", nil, nil)
}

// TestAlert implements Fleet.
func (c *Client) TestAlert(ctx context.Context) ([]audit.Tested, error) {
	return get[[]audit.Tested](ctx, c, "POST", "/v1/audit/test-alert", nil)
}
