package audit_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/datalink-go/datalink/coordination"
	"github.com/datalink-go/datalink/host/audit"
)

func TestAlerts(t *testing.T) {
	got := make(chan audit.Alert, 10)
	calls := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		if calls <= 2 { // the first tries fail
			http.Error(w, "not now", http.StatusBadGateway)
			return
		}
		if r.Header.Get("Authorization") != "Bearer x" {
			t.Errorf("headers: got %v", r.Header)
		}
		data, _ := io.ReadAll(r.Body)
		var a audit.Alert
		if err := json.Unmarshal(data, &a); err != nil {
			t.Error(err)
		}
		got <- a
	}))
	defer srv.Close()
	file := filepath.Join(t.TempDir(), "out")
	a, err := audit.NewAlerts(audit.Channels{
		Webhook: srv.URL, Headers: []audit.Header{{Name: "Authorization", Value: "Bearer x"}}, Retry: time.Millisecond,
		Command: []string{"sh", "-c", "cat >>" + file},
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // the same record is told once
		a.Overlap(coordination.Overlap{ID: "one", Task: "orders", Certain: true, Verdict: coordination.PossiblyDirty})
	}
	a.Overlap(coordination.Overlap{ID: "two", Task: "orders"})
	for _, want := range []string{"one", "two"} {
		if al := <-got; al.ID != want || al.Kind != "overlap" || al.Overlap.Task != "orders" || !strings.Contains(al.Text, "datalink audit show "+want) {
			t.Errorf("webhook: got %+v, want %s", al, want)
		}
	}
	for _, x := range a.Test(t.Context(), "t") {
		if !x.OK {
			t.Errorf("test: got %+v", x)
		}
	}
	if al := <-got; al.Kind != "test" {
		t.Errorf("test alert: got %+v", al)
	}
	a.Close()
	a.Close()
	data, err := os.ReadFile(file)
	if err != nil || strings.Count(string(data), "\n") != 3 {
		t.Errorf("command: got %q, %v, want three lines", data, err)
	}
	a.Overlap(coordination.Overlap{ID: "late"}) // of no effect, and no panic
}

func TestAlertsGiveUp(t *testing.T) {
	a, err := audit.NewAlerts(audit.Channels{Command: []string{"sh", "-c", "echo no way; exit 3"}, Retry: time.Millisecond, Tries: 2}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	out := a.Test(t.Context(), "t")
	if len(out) != 2 || out[1].OK || !strings.Contains(out[1].Error, "no way") {
		t.Errorf("test: got %+v, want the command's failure with what it said", out)
	}
}
