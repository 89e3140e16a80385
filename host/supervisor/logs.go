package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// lineLimit bounds one line of a plugin's output; a longer one is cut.
const lineLimit = 64 << 10

// A plugin that writes without end must not fill the host's log: what it may write
// at once, and for good, in bytes a second. A line costs lineCost besides.
const (
	logBurst = 4 << 20
	logRate  = 256 << 10
	lineCost = 128
)

// logs takes a plugin's output line by line into a log. Lines that a structured
// logger wrote (slog or hclog, as JSON) keep their level and attributes; others
// come at the level of the stream. It is safe for concurrent use.
type logs struct {
	log   *slog.Logger
	level slog.Level
	pipe  string // "stdout" or "stderr"

	mu      sync.Mutex
	line    []byte
	cut     bool
	panicky string // first line of a crash
	last    string
	spent   int64     // of logBurst
	since   time.Time // of spent
	left    int       // lines left out since the last one that was logged
}

// Write implements io.Writer and never fails.
func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(p)
	for len(p) > 0 {
		part, rest, whole := bytes.Cut(p, []byte{'\n'})
		if room := lineLimit - len(l.line); len(part) > room {
			part, l.cut = part[:room], true
		}
		l.line = append(l.line, part...)
		if whole {
			l.emit()
		}
		p = rest
	}
	return n, nil
}

// words returns what a dead plugin said: how its crash began, else its last line.
func (l *logs) words() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.line) > 0 {
		l.emit()
	}
	l.confess()
	if l.panicky != "" {
		return l.panicky
	}
	return l.last
}

// afford reports whether a line of n bytes may be logged; if not it is counted.
func (l *logs) afford(n int) bool {
	now := time.Now()
	if !l.since.IsZero() {
		l.spent = max(0, l.spent-int64(now.Sub(l.since).Seconds()*logRate))
	}
	l.since = now
	if l.spent+int64(n+lineCost) > logBurst {
		l.left++
		return false
	}
	l.spent += int64(n + lineCost)
	if l.left > 0 && l.spent < logBurst/2 || l.left >= 1<<20 {
		l.confess()
	}
	return true
}

// confess says how many lines were left out.
func (l *logs) confess() {
	if l.left > 0 {
		l.log.Warn("the plugin writes more than the log takes: lines were left out", "lines", l.left, "pipe", l.pipe)
		l.left = 0
	}
}

func (l *logs) emit() {
	line := l.line
	l.line = l.line[:0]
	if l.cut {
		line, l.cut = append(line, "… (line cut)"...), false
	}
	line = bytes.TrimRight(line, "\r")
	if len(line) == 0 {
		return
	}
	if line[0] == '{' && l.structured(line) {
		return
	}
	text := string(line)
	if l.last = text; l.panicky == "" && (strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ")) {
		l.panicky = text
	}
	if l.log.Enabled(context.Background(), l.level) && l.afford(len(text)) {
		l.log.Log(context.Background(), l.level, text, "pipe", l.pipe)
	}
}

// structured logs a line of JSON with a message and a level.
func (l *logs) structured(line []byte) bool {
	var kv map[string]any
	if json.Unmarshal(line, &kv) != nil {
		return false
	}
	take := func(names ...string) string {
		for _, n := range names {
			if s, ok := kv[n].(string); ok {
				delete(kv, n)
				return s
			}
		}
		return ""
	}
	msg, lvl, at := take(slog.MessageKey, "@message"), take(slog.LevelKey, "@level"), take(slog.TimeKey, "@timestamp")
	var level slog.Level
	if msg == "" || level.UnmarshalText([]byte(lvl)) != nil && !strings.EqualFold(lvl, "trace") {
		return false
	}
	if strings.EqualFold(lvl, "trace") {
		level = slog.LevelDebug - 4
	}
	if !l.log.Enabled(context.Background(), level) {
		return true
	}
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		t = time.Now()
	}
	r := slog.NewRecord(t, level, msg, 0)
	for k, v := range kv {
		r.AddAttrs(slog.Any(k, v))
	}
	if l.afford(len(line)) {
		_ = l.log.Handler().Handle(context.Background(), r)
	}
	if level >= slog.LevelError {
		l.last = msg
		if e, ok := kv["error"].(string); ok {
			l.last += ": " + e
		}
	}
	return true
}
