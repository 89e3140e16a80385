package manifest

import (
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// ErrInvalid is wrapped by every error of Validate.
var ErrInvalid = errors.New("invalid manifest")

// Compiled where they are used: a guest that never validates does not link regexp.
const (
	nameForm    = `^[a-z][a-z0-9]*(-[a-z0-9]+)*$`
	versionForm = `^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`
)

// Validate reports all that is wrong with a manifest as it is published: see
// https://semver.org for the version. A file stands beside the manifest, its name
// has no path.
func (m *Manifest) Validate() error {
	var errs []error
	add := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	if !regexp.MustCompile(nameForm).MatchString(m.Name) || len(m.Name) > 64 {
		add("name %q, expected lower-case letters, digits and single hyphens, at most 64", m.Name)
	}
	if !regexp.MustCompile(versionForm).MatchString(m.Version) {
		add("version %q, expected a semantic version such as 1.2.3", m.Version)
	}
	if m.ProtocolMin == 0 || m.ProtocolMin > m.ProtocolMax {
		add("protocol versions %d to %d, expected a range from 1 on", m.ProtocolMin, m.ProtocolMax)
	}
	if m.BatchFormat == 0 {
		add("batch format 0, expected 1 or more")
	}
	if m.Kind != "process" && m.Kind != "wasm" {
		add("kind %q, expected process or wasm", m.Kind)
	}
	if len(m.Roles) == 0 {
		add("no roles, expected at least one of reader, writer, transform")
	}
	for role, f := range m.Roles {
		switch {
		case role != Reader && role != Writer && role != Transform:
			add("role %q, expected reader, writer or transform", role)
		case role == Writer && f.Level != LevelIdempotent && f.Level != LevelVersioned && f.Level != LevelTransactional:
			add("writer of level %q, expected idempotent, versioned or transactional", f.Level)
		case role != Writer && f.Level != LevelNone:
			add("%s of level %q, expected none", role, f.Level)
		}
	}
	seen := map[string]bool{}
	for _, p := range m.Platforms {
		where := p.OS + "/" + p.Arch
		if m.Kind == "wasm" && where != "/" || m.Kind == "process" && (p.OS == "" || p.Arch == "") {
			add("platform %q of kind %s, expected os and arch for processes and neither for wasm", where, m.Kind)
		}
		if seen[where] {
			add("platform %q twice", where)
		}
		seen[where] = true
		if p.File == "" || p.File == "." || p.File == ".." || strings.ContainsAny(p.File, `/\`) {
			add("file %q, expected a name without a path", p.File)
		}
		if sum, err := hex.DecodeString(p.SHA256); err != nil || len(sum) != 32 || strings.ToLower(p.SHA256) != p.SHA256 {
			add("sha256 %q of %s, expected 64 lower-case hexadecimal digits", p.SHA256, p.File)
		}
	}
	return errors.Join(errs...)
}
