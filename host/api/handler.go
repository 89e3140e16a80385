package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// maxBody bounds a request.
const maxBody = 16 << 20

type failure struct {
	Error struct {
		Kind    Kind   `json:"kind"`
		Message string `json:"message"`
	} `json:"error"`
}

// Handler serves a Backend under /v1, and its description at /v1/openapi.json.
func Handler(b Backend) http.Handler {
	mux := http.NewServeMux()
	for _, rt := range routes(b) {
		mux.HandleFunc(rt.method+" "+rt.path, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			v, err := rt.serve(r)
			reply(w, v, err)
		})
	}
	mux.HandleFunc("GET /v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) { reply(w, Description(), nil) })
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

// Tokens are what requests over TCP carry. Read is for those that change nothing.
type Tokens struct{ Write, Read string }

// Guard lets only requests pass that carry a token which allows them.
func Guard(t Tokens, next http.Handler) http.Handler {
	refuse := func(w http.ResponseWriter, code int, message string) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(code)
		var f failure
		f.Error.Kind, f.Error.Message = Usage, message
		_ = json.NewEncoder(w).Encode(f)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := r.Header.Get("Authorization")
		write, read := sameToken(got, "Bearer "+t.Write), sameToken(got, "Bearer "+t.Read)
		switch {
		case write && t.Write != "" || read && t.Read != "" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
			next.ServeHTTP(w, r)
		case read && t.Read != "":
			refuse(w, http.StatusForbidden, fmt.Sprintf("the token of %s only reads, and %s %s changes something: pass that of %s", ReadTokenFile, r.Method, r.URL.Path, TokenFile))
		default:
			refuse(w, http.StatusUnauthorized, fmt.Sprintf("the request has no valid token: pass the content of the daemon's %s with --api-token-file", TokenFile))
		}
	})
}
