package postgres

import (
	"strings"

	"github.com/datalink-go/datalink/sdk"
)

// maxName is the length in bytes at which PostgreSQL cuts identifiers.
const maxName = 63

// quote writes an identifier so that PostgreSQL takes it for nothing else: names
// with capitals, blanks, quotes, dots, dashes and keywords among them.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// literal writes a text literal.
func literal(s string) string {
	q := `'` + strings.ReplaceAll(s, `'`, `''`) + `'`
	if strings.Contains(s, `\`) {
		return ` E` + strings.ReplaceAll(q, `\`, `\\`)
	}
	return q
}

// checkName refuses names that PostgreSQL cannot hold or that are not for rows.
func checkName(what, name string) error {
	switch {
	case name == "":
		return sdk.Faultf(sdk.CodeSchemaMismatch, "%s without a name", what)
	case strings.ContainsRune(name, 0):
		return sdk.Faultf(sdk.CodeSchemaMismatch, "%s %q: PostgreSQL names hold no NUL", what, name).Suggest("rename it by a mapping")
	case len(name) > maxName:
		return sdk.Faultf(sdk.CodeSchemaMismatch, "%s %q has %d bytes: PostgreSQL cuts names at %d", what, name, len(name), maxName).Suggest("rename it by a mapping")
	case what == "table" && strings.HasPrefix(name, "datalink_"):
		return sdk.Faultf(sdk.CodeSchemaMismatch, "table %q: names that begin with datalink_ are reserved in the target", name).
			Suggest("rename it by a mapping")
	case what == "schema" && (strings.HasPrefix(name, "pg_") || name == "information_schema"):
		return sdk.Faultf(sdk.CodeSchemaMismatch, "schema %q is PostgreSQL's own", name).Suggest("rename it by a mapping")
	}
	return nil
}
