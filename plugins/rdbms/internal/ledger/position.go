package ledger

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/datalink-go/datalink/sdk"
)

// position is the stored form: JSON, so that an operator can read it. Source
// bytes that are not UTF-8 stand in base64 under another name.
type position struct {
	Format  string `json:"format"`
	Version uint32 `json:"version"`
	Source  string `json:"source,omitempty"`
	Base64  []byte `json:"source64,omitempty"`
	Ordinal uint64 `json:"ordinal,omitempty"`
}

// EncodePosition returns the stored form of p, "" for no position.
func EncodePosition(p sdk.Position) string {
	if p.IsZero() {
		return ""
	}
	j := position{Format: p.Format, Version: p.Version, Ordinal: p.Ordinal}
	if utf8.Valid(p.Source) {
		j.Source = string(p.Source)
	} else {
		j.Base64 = p.Source
	}
	b, err := json.Marshal(j)
	if err != nil {
		panic("ledger: a struct of strings and numbers does not marshal: " + err.Error())
	}
	return string(b)
}

// DecodePosition is the inverse of EncodePosition.
func DecodePosition(text string) (sdk.Position, error) {
	if text == "" {
		return sdk.Position{}, nil
	}
	var j position
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return sdk.Position{}, fmt.Errorf("stored position %q: %w", text, err)
	}
	p := sdk.Position{Format: j.Format, Version: j.Version, Ordinal: j.Ordinal}
	switch {
	case j.Source != "":
		p.Source = []byte(j.Source)
	case len(j.Base64) > 0:
		p.Source = j.Base64
	}
	if p.IsZero() {
		return sdk.Position{}, nil
	}
	return p, nil
}
