package sdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestSecretNeverPrints tries every way in which values are printed by accident.
func TestSecretNeverPrints(t *testing.T) {
	const text = "hunter2"
	s := NewSecret(text)
	inside := struct {
		Public Secret
		hidden Secret
		ptr    *Secret
	}{s, s, &s}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%p", "%t", "%20s", "%c"} {
		for _, v := range []any{s, &s, inside, &inside, []Secret{s}, map[string]Secret{"a": s}} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	fmt.Fprint(&out, s, fmt.Errorf("connect with %v: %w", s, errors.New("x")))
	for _, v := range []any{s, &s, inside, []Secret{s}, map[string]Secret{"a": s}} {
		if data, err := json.Marshal(v); err == nil {
			out.Write(data)
		}
		if data, err := yaml.Marshal(v); err == nil {
			out.Write(data)
		}
		slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v, slog.Any("w", v))
		slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v)
	}
	for _, p := range ParseConfig([]byte(`{"host":"h","password":["`+text+`"]}`), &testConfig{}) {
		out.WriteString(p.String())
	}
	for _, form := range []string{text, fmt.Sprintf("%x", text), fmt.Sprintf("%X", text), fmt.Sprintf("%v", []byte(text))} {
		if strings.Contains(out.String(), form) {
			t.Errorf("printed as %q in\n%s", form, out.String())
		}
	}
	if s.Reveal() != text || !s.Equal(NewSecret(text)) || s.IsZero() || !NewSecret("").IsZero() || (Secret{}).Reveal() != "" {
		t.Error("the secret does not hold its text")
	}
}

func TestByteSize(t *testing.T) {
	for text, want := range map[string]string{"0": "0B", "1000": "1000B", "64KiB": "64KiB", "1024 KiB": "1MiB", "2048TiB": "2048TiB", "3kB": "3000B"} {
		n, err := ParseByteSize(text)
		if err != nil || n.String() != want {
			t.Errorf("%s: got %s, %v, want %s", text, n, err, want)
		}
	}
}
