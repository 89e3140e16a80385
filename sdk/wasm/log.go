package wasm

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
)

// handler is a slog.Handler that hands each record to the host as one line:
// message, then key=value pairs. The host adds time, task and module.
type handler struct {
	write  func(level int32, line []byte)
	prefix string // of open groups
	attrs  []byte // of WithAttrs, rendered
}

func (h *handler) Enabled(context.Context, slog.Level) bool { return true }

func (h *handler) Handle(_ context.Context, r slog.Record) error {
	line := append([]byte(r.Message), h.attrs...)
	r.Attrs(func(a slog.Attr) bool {
		line = appendAttr(line, h.prefix, a)
		return true
	})
	h.write(int32(r.Level), line)
	return nil
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.attrs = slices.Clone(h.attrs)
	for _, a := range attrs {
		c.attrs = appendAttr(c.attrs, h.prefix, a)
	}
	return &c
}

func (h *handler) WithGroup(name string) slog.Handler {
	c := *h
	if name != "" {
		c.prefix += name + "."
	}
	return &c
}

func appendAttr(dst []byte, prefix string, a slog.Attr) []byte {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
		}
		for _, g := range v.Group() {
			dst = appendAttr(dst, prefix, g)
		}
		return dst
	}
	if a.Key == "" {
		return dst
	}
	dst = append(dst, ' ')
	dst = append(dst, prefix...)
	dst = append(dst, a.Key...)
	dst = append(dst, '=')
	return strconv.AppendQuote(dst, v.String())
}
