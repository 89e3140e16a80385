package coordtest

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"pgregory.net/rapid"
)

// recorder is a T that keeps failures to itself.
type recorder struct {
	rapid.TB
	T T

	mu     sync.Mutex
	fails  []string
	failed bool
	skip   bool
}

func (r *recorder) Context() context.Context { return r.T.Context() }
func (r *recorder) TempDir() string          { return r.T.TempDir() }
func (r *recorder) Cleanup(f func())         { r.T.Cleanup(f) }
func (r *recorder) Helper()                  {}
func (r *recorder) Logf(string, ...any)      {}
func (r *recorder) Log(...any)               {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
	r.fails = append(r.fails, fmt.Sprintf(format, args...))
}

func (r *recorder) Error(args ...any) { r.Errorf("%s", fmt.Sprint(args...)) }

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

func (r *recorder) Fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) SkipNow() {
	r.mu.Lock()
	r.skip = true
	r.mu.Unlock()
	runtime.Goexit()
}

func (r *recorder) Skip(...any)          { r.SkipNow() }
func (r *recorder) Skipf(string, ...any) { r.SkipNow() }

func (r *recorder) skipped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.skip
}

func (r *recorder) first() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.fails) == 0 {
		return "(no text)"
	}
	return r.fails[0]
}
