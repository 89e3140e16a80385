package sdk

import (
	"fmt"
	"io"
	"log/slog"
)

// hidden is what a Secret prints as; an empty one prints as nothing.
const hidden = "***"

// Secret is text of a configuration that is never printed: by no verb of fmt, in
// no log, in no JSON or YAML, not even as an unexported field of another value.
// The zero value is empty.
type Secret struct {
	// A closure: nothing that walks a value by reflection can look into it.
	reveal func() string
}

// NewSecret returns a Secret that holds s.
func NewSecret(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{func() string { return s }}
}

// Reveal returns the text. Hand it to what needs it and keep it nowhere.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// IsZero reports whether the secret is empty.
func (s Secret) IsZero() bool { return s.reveal == nil }

// Equal reports whether both hold the same text.
func (s Secret) Equal(o Secret) bool { return s.Reveal() == o.Reveal() }

// String does not return the text.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return hidden
}

// GoString does not return the text.
func (s Secret) GoString() string { return "sdk.Secret(" + s.String() + ")" }

// Format writes String, or GoString for %#v, whatever the verb.
func (s Secret) Format(f fmt.State, verb rune) {
	text := s.String()
	if verb == 'v' && f.Flag('#') {
		text = s.GoString()
	}
	_, _ = io.WriteString(f, text)
}

// MarshalText does not return the text; it covers JSON, XML and most of YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalYAML does not return the text.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// LogValue does not return the text.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
