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
	if l.panicky != "" {
		return l.panicky
	}
	return l.last
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
	l.log.Log(context.Background(), l.level, text, "pipe", l.pipe)
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
	_ = l.log.Handler().Handle(context.Background(), r)
	if level >= slog.LevelError {
		l.last = msg
		if e, ok := kv["error"].(string); ok {
			l.last += ": " + e
		}
	}
	return true
}
