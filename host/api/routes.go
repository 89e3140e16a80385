package api

import (
	"net/http"
	"reflect"
	"strconv"

	"github.com/datalink-go/datalink/coordination"
)

// Bodies of requests that are no type of the Backend.
type (
	numbers struct {
		Writer  string   `json:"writer"`
		Numbers []uint64 `json:"numbers"`
	}
	install struct {
		Registry string `json:"registry"`
		Name     string `json:"name"`
		Version  string `json:"version"`
	}
	position struct {
		Position string `json:"position"`
	}
	change struct {
		To Change `json:"to"`
	}
	nothing struct{}
)

// route is one call of the API: what is served and what is described are the same.
type route struct {
	method, path string
	summary      string
	query        []string
	in, out      reflect.Type // in is nil where there is no body
	serve        func(*http.Request) (any, error)
}

// call0 is a call without a body.
func call0[Out any](method, path, summary string, f func(*http.Request) (Out, error), query ...string) route {
	return route{method, path, summary, query, nil, reflect.TypeFor[Out](), func(r *http.Request) (any, error) { return f(r) }}
}

// call1 is a call with a body.
func call1[In, Out any](method, path, summary string, f func(*http.Request, In) (Out, error), query ...string) route {
	return route{method, path, summary, query, reflect.TypeFor[In](), reflect.TypeFor[Out](), func(r *http.Request) (any, error) {
		var q In
		if err := read(r, &q); err != nil {
			return nil, err
		}
		return f(r, q)
	}}
}

func routes(b Backend) []route {
	task := func(r *http.Request) string { return r.PathValue("task") }
	return append([]route{
		call1("POST", "/v1/tasks", "create tasks, or change those that are there", func(r *http.Request, q []File) ([]Applied, error) { return b.Apply(r.Context(), q) }),
		call0("GET", "/v1/tasks", "list tasks", func(r *http.Request) ([]Task, error) { return b.Tasks(r.Context()) }),
		call0("GET", "/v1/tasks/{task}", "show a task with positions, journal and specification", func(r *http.Request) (*Task, error) { return b.Task(r.Context(), task(r)) }),
		call0("DELETE", "/v1/tasks/{task}", "delete a task; release=true also removes what it left in its stores", func(r *http.Request) (nothing, error) {
			return nothing{}, b.Delete(r.Context(), task(r), r.URL.Query().Get("release") == "true")
		}, "release"),
		call1("POST", "/v1/tasks/{task}/change", "pause, resume, restart or take a task over", func(r *http.Request, q change) (*Task, error) { return b.Change(r.Context(), task(r), q.To) }),
		call0("GET", "/v1/tasks/{task}/position", "say how far each writer came", func(r *http.Request) ([]Position, error) { return b.Position(r.Context(), task(r)) }),
		call1("PUT", "/v1/tasks/{task}/position", "stop the task and set its position through a claim", func(r *http.Request, q position) ([]Position, error) {
			return b.SetPosition(r.Context(), task(r), q.Position)
		}),
		call0("GET", "/v1/tasks/{task}/snapshot", "say how far the snapshots of a running task are", func(r *http.Request) (*Snapshot, error) {
			return b.Snapshot(r.Context(), task(r), SnapshotQuery{})
		}),
		call1("POST", "/v1/tasks/{task}/snapshot", "take tables anew beside the stream, pause or resume that", func(r *http.Request, q SnapshotQuery) (*Snapshot, error) {
			return b.Snapshot(r.Context(), task(r), q)
		}),
		call0("GET", "/v1/tasks/{task}/dead-letters", "list records that were set aside", func(r *http.Request) ([]DeadLetter, error) { return b.DeadLetters(r.Context(), task(r)) }),
		call0("GET", "/v1/tasks/{task}/dead-letters/{number}", "show one with its row", func(r *http.Request) (*DeadLetter, error) {
			n, err := strconv.ParseUint(r.PathValue("number"), 10, 64)
			if err != nil {
				return nil, Errorf(Usage, "dead letter %q: expected a number", r.PathValue("number"))
			}
			return b.DeadLetter(r.Context(), task(r), r.URL.Query().Get("writer"), n)
		}, "writer"),
		call1("POST", "/v1/tasks/{task}/dead-letters/retry", "repair the keys of dead letters", func(r *http.Request, q numbers) ([]Outcome, error) {
			return b.Retry(r.Context(), task(r), q.Writer, q.Numbers)
		}),
		call1("POST", "/v1/tasks/{task}/dead-letters/drop", "forget dead letters", func(r *http.Request, q numbers) ([]Outcome, error) {
			return b.Drop(r.Context(), task(r), q.Writer, q.Numbers)
		}),
		call0("GET", "/v1/overlaps", "list overlaps of executions", func(r *http.Request) ([]coordination.Overlap, error) { return b.Overlaps(r.Context()) }),
		call0("GET", "/v1/overlaps/{id}", "show an overlap", func(r *http.Request) (*coordination.Overlap, error) { return b.Overlap(r.Context(), r.PathValue("id")) }),
		call0("GET", "/v1/plugins", "list plugins", func(r *http.Request) ([]Plugin, error) { return b.Plugins(r.Context()) }),
		call0("GET", "/v1/plugins/{name}", "show a plugin with its manifest", func(r *http.Request) (*Plugin, error) {
			return b.Plugin(r.Context(), r.PathValue("name"), r.URL.Query().Get("version"))
		}, "version"),
		call1("POST", "/v1/plugins", "install a plugin from a registry", func(r *http.Request, q install) (*Plugin, error) {
			return b.Install(r.Context(), q.Registry, q.Name, q.Version)
		}),
		call1("POST", "/v1/doctor", "look for everything that would make tasks fail", func(r *http.Request, q []File) ([]Finding, error) { return b.Doctor(r.Context(), q) }),
	}, append(fleetRoutes(b), verifyRoutes(b)...)...)
}
