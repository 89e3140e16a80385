package sqlite

import (
	"strings"

	"github.com/datalink-go/datalink/sdk"
)

// quote writes an identifier so that SQLite takes it for nothing else: names
// with blanks, quotes, dots, dashes and keywords among them.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// literal writes a text literal.
func literal(s string) string { return `'` + strings.ReplaceAll(s, `'`, `''`) + `'` }

// fold brings names to the form in which SQLite compares them: ASCII letters
// have no case, all others do.
func fold(name string) string {
	b := []byte(name)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// checkName refuses names that SQLite cannot hold or that are not for rows.
func checkName(what, name string) error {
	switch f := fold(name); {
	case name == "":
		return sdk.Faultf(sdk.CodeSchemaMismatch, "%s without a name", what)
	case strings.ContainsRune(name, 0):
		return sdk.Faultf(sdk.CodeSchemaMismatch, "%s %q: SQLite names hold no NUL", what, name).Suggest("rename it by a mapping")
	case what == "table" && (strings.HasPrefix(f, "sqlite_") || strings.HasPrefix(f, "datalink_")):
		return sdk.Faultf(sdk.CodeSchemaMismatch, "table %q: names that begin with sqlite_ or datalink_ are reserved in the target", name).
			Suggest("rename it by a mapping")
	}
	return nil
}
