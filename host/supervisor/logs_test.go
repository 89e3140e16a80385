package supervisor

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A plugin that floods its output must not flood the host's log, whichever form
// its lines have; what it said last is known all the same, and that lines are
// missing is said.
func TestLogsAreBounded(t *testing.T) {
	for name, line := range map[string]string{
		"text":       strings.Repeat("x", 100) + "\n",
		"structured": `{"time":"2026-01-02T03:04:05Z","level":"ERROR","msg":"` + strings.Repeat("x", 60) + `"}` + "\n",
		"long":       strings.Repeat("y", 3*lineLimit) + "\n",
		"short":      "e\n",
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			l := &logs{log: slog.New(slog.NewTextHandler(&out, nil)), level: slog.LevelWarn, pipe: "stderr"}
			begun := time.Now()
			data := []byte(strings.Repeat(line, 1+(1<<20)/len(line)))
			for range 40 {
				if len(line) < 10 && time.Since(begun) > 2*time.Second {
					break
				}
				fmt.Fprintf(l, "%s", data)
			}
			fmt.Fprintf(l, "panic: the end\n")
			if got := l.words(); got != "panic: the end" {
				t.Errorf("last words %q", got)
			}
			if limit := int(2 * (logBurst + logRate*(time.Since(begun).Seconds()+1))); out.Len() > limit {
				t.Errorf("%d bytes were logged, want at most %d", out.Len(), limit)
			}
			if !strings.Contains(out.String(), "lines were left out") {
				t.Error("nothing says that lines are missing")
			}
		})
	}
}
