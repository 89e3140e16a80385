package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
)

// maxBody bounds a request.
const maxBody = 16 << 20

type numbers struct {
	Writer  string   `json:"writer"`
	Numbers []uint64 `json:"numbers"`
}

type install struct {
	Registry string `json:"registry"`
	Name     string `json:"name"`
	Version  string `json:"version"`
}

type position struct {
	Position string `json:"position"`
}

type change struct {
	To Change `json:"to"`
}

type failure struct {
	Error struct {
		Kind    Kind   `json:"kind"`
		Message string `json:"message"`
	} `json:"error"`
}

// Handler serves a Backend under /v1.
func Handler(b Backend) http.Handler {
	mux := http.NewServeMux()
	on := func(pattern string, f func(r *http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			v, err := f(r)
			reply(w, v, err)
		})
	}
	on("POST /v1/tasks", func(r *http.Request) (any, error) {
		var q []File
		if err := read(r, &q); err != nil {
			return nil, err
		}
		return b.Apply(r.Context(), q)
	})
	on("GET /v1/tasks", func(r *http.Request) (any, error) { return b.Tasks(r.Context()) })
	on("GET /v1/tasks/{task}", func(r *http.Request) (any, error) { return b.Task(r.Context(), r.PathValue("task")) })
	on("DELETE /v1/tasks/{task}", func(r *http.Request) (any, error) {
		return struct{}{}, b.Delete(r.Context(), r.PathValue("task"), r.URL.Query().Get("release") == "true")
	})
	on("POST /v1/tasks/{task}/change", func(r *http.Request) (any, error) {
		var q change
		if err := read(r, &q); err != nil {
			return nil, err
		}
		return b.Change(r.Context(), r.PathValue("task"), q.To)
	})
	on("GET /v1/tasks/{task}/position", func(r *http.Request) (any, error) { return b.Position(r.Context(), r.PathValue("task")) })
	on("PUT /v1/tasks/{task}/position", func(r *http.Request) (any, error) {
		var q position
		if err := read(r, &q); err != nil {
			return nil, err
		}
		return b.SetPosition(r.Context(), r.PathValue("task"), q.Position)
	})
	on("GET /v1/tasks/{task}/dead-letters", func(r *http.Request) (any, error) {
		return b.DeadLetters(r.Context(), r.PathValue("task"))
	})
	on("GET /v1/tasks/{task}/dead-letters/{number}", func(r *http.Request) (any, error) {
		n, err := strconv.ParseUint(r.PathValue("number"), 10, 64)
		if err != nil {
			return nil, Errorf(Usage, "dead letter %q: expected a number", r.PathValue("number"))
		}
		return b.DeadLetter(r.Context(), r.PathValue("task"), r.URL.Query().Get("writer"), n)
	})
	on("POST /v1/tasks/{task}/dead-letters/retry", func(r *http.Request) (any, error) {
		var q numbers
		if err := read(r, &q); err != nil {
			return nil, err
		}
		return b.Retry(r.Context(), r.PathValue("task"), q.Writer, q.Numbers)
	})
	on("POST /v1/tasks/{task}/dead-letters/drop", func(r *http.Request) (any, error) {
		var q numbers
		if err := read(r, &q); err != nil {
			return nil, err
		}
		return b.Drop(r.Context(), r.PathValue("task"), q.Writer, q.Numbers)
	})
	on("GET /v1/overlaps", func(r *http.Request) (any, error) { return b.Overlaps(r.Context()) })
	on("GET /v1/overlaps/{id}", func(r *http.Request) (any, error) { return b.Overlap(r.Context(), r.PathValue("id")) })
	on("GET /v1/plugins", func(r *http.Request) (any, error) { return b.Plugins(r.Context()) })
	on("GET /v1/plugins/{name}", func(r *http.Request) (any, error) {
		return b.Plugin(r.Context(), r.PathValue("name"), r.URL.Query().Get("version"))
	})
	on("POST /v1/plugins", func(r *http.Request) (any, error) {
		var q install
		if err := read(r, &q); err != nil {
			return nil, err
		}
		return b.Install(r.Context(), q.Registry, q.Name, q.Version)
	})
	on("POST /v1/doctor", func(r *http.Request) (any, error) {
		var q []File
		if err := read(r, &q); err != nil {
			return nil, err
		}
		return b.Doctor(r.Context(), q)
	})
	return mux
}

func read(r *http.Request, v any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return Errorf(Usage, "body of the request: %w", err)
	}
	return nil
}

func reply(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err == nil {
		_ = json.NewEncoder(w).Encode(v)
		return
	}
	var f failure
	f.Error.Kind, f.Error.Message = KindOf(err), err.Error()
	code := http.StatusInternalServerError
	var tooBig *http.MaxBytesError
	switch {
	case errors.As(err, &tooBig):
		code = http.StatusRequestEntityTooLarge
	case f.Error.Kind == Usage:
		code = http.StatusBadRequest
	case f.Error.Kind == CheckFailed, f.Error.Kind == Fenced:
		code = http.StatusConflict
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(f)
}

// Guard lets only requests pass that carry the token.
func Guard(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !sameToken(r.Header.Get("Authorization"), "Bearer "+token) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
			var f failure
			f.Error.Kind, f.Error.Message = Usage, fmt.Sprintf("the request has no valid token: pass the content of the daemon's %s with --api-token-file", TokenFile)
			_ = json.NewEncoder(w).Encode(f)
			return
		}
		next.ServeHTTP(w, r)
	})
}
