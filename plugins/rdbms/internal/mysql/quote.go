package mysql

import (
	"strings"
	"unicode/utf8"

	"github.com/datalink-go/datalink/sdk"
)

// quote writes an identifier so that the server takes it for nothing else.
func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// literal writes a text literal.
func literal(s string) string { return string(appendQuoted(nil, s)) }

// escapes holds what stands behind a backslash for the bytes that a string
// literal, or a field of LOAD DATA, cannot hold as they are (sql_mode without
// NO_BACKSLASH_ESCAPES).
var escapes = [256]byte{0: '0', '\t': 't', '\n': 'n', '\r': 'r', '\\': '\\', '\'': '\'', 0x1a: 'Z'}

// appendQuoted appends text or bytes as a string literal without an introducer.
func appendQuoted[T string | []byte](b []byte, s T) []byte {
	b = append(b, '\'')
	from := 0
	for i := range len(s) {
		if e := escapes[s[i]]; e != 0 {
			b = append(append(b, s[from:i]...), '\\', e)
			from = i + 1
		}
	}
	return append(append(b, s[from:]...), '\'')
}

// checkName refuses names that the server cannot hold or that are not for rows.
func checkName(what, name string) error {
	switch {
	case name == "":
		return sdk.Faultf(sdk.CodeSchemaMismatch, "%s without a name", what)
	case strings.ContainsRune(name, 0), strings.HasSuffix(name, " "), strings.ContainsFunc(name, func(r rune) bool { return r > 0xffff }), !utf8.ValidString(name):
		return sdk.Faultf(sdk.CodeSchemaMismatch, "%s %q: the target's names hold neither NUL nor characters beyond U+FFFF and do not end in a blank", what, name).
			Suggest("rename it by a mapping")
	case utf8.RuneCountInString(name) > 64:
		return sdk.Faultf(sdk.CodeSchemaMismatch, "%s %q has %d characters, the target's names at most 64", what, name, utf8.RuneCountInString(name)).
			Suggest("rename it by a mapping")
	case what == "table" && strings.HasPrefix(strings.ToLower(name), "datalink_"):
		return sdk.Faultf(sdk.CodeSchemaMismatch, "table %q: names that begin with datalink_ are reserved in the target", name).Suggest("rename it by a mapping")
	}
	return nil
}
