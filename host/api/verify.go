package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/datalink-go/datalink/host/verify"
)

// Verifier compares source and target of running tasks.
type Verifier interface {
	// Verify begins, goes on with or cancels the verification of a task, and returns
	// how far it is. Without an action it only tells.
	Verify(ctx context.Context, task string, q VerifyQuery) (*verify.State, error)
}

// VerifyQuery says what to compare.
type VerifyQuery struct {
	Action           string   `json:"action"`           // start, resume, cancel; "" = say how far it is
	Tables           []string `json:"tables,omitempty"` // names or patterns of tables of the source; none = all
	Repair           bool     `json:"repair,omitempty"`
	MaxRowsPerSecond int      `json:"maxRowsPerSecond,omitempty"` // 0 = no limit
}

func verifyRoutes(b Verifier) []route {
	task := func(r *http.Request) string { return r.PathValue("task") }
	return []route{
		call0("GET", "/v1/tasks/{task}/verify", "say how far the comparison of source and target is and what it found", func(r *http.Request) (*verify.State, error) {
			return b.Verify(r.Context(), task(r), VerifyQuery{})
		}),
		call1("POST", "/v1/tasks/{task}/verify", "compare source and target while the task runs, go on with that, or cancel it", func(r *http.Request, q VerifyQuery) (*verify.State, error) {
			return b.Verify(r.Context(), task(r), q)
		}),
	}
}

// Verify implements Verifier.
func (c *Client) Verify(ctx context.Context, task string, q VerifyQuery) (*verify.State, error) {
	path := "/v1/tasks/" + url.PathEscape(task) + "/verify"
	if q.Action == "" {
		return get[*verify.State](ctx, c, "GET", path, nil)
	}
	return get[*verify.State](ctx, c, "POST", path, q)
}
