package schema

import (
	"strings"
	"unicode/utf8"
)

// kind of a token.
type kind uint8

const (
	word   kind = iota // identifier or keyword, not quoted
	quoted             // identifier in backticks (or double quotes under ANSI_QUOTES)
	text               // string literal, its quotes and escapes undone
	number
	punct
	end
)

// token is a piece of a statement. From and to are its place in the text.
type token struct {
	kind     kind
	s        string
	from, to int
}

// Dialect is what the meaning of a statement's text depends on.
type Dialect struct {
	MariaDB            bool
	Version            int // as in version comments: 80036, 101119
	ANSIQuotes         bool
	NoBackslashEscapes bool
}

// tokenize cuts a statement into tokens. Comments are left out; the inside of
// version comments that the server executed is not.
func tokenize(sql string, d Dialect) ([]token, bool) {
	var out []token
	depth := 0 // of version comments
	for i := 0; i < len(sql); {
		c := sql[i]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v' || c == 0:
			i++
		case c == '#':
			i = lineEnd(sql, i)
		case strings.HasPrefix(sql[i:], "--") && (i+2 == len(sql) || sql[i+2] <= ' '):
			i = lineEnd(sql, i)
		case strings.HasPrefix(sql[i:], "/*"):
			if n, ok := versionComment(sql[i:], d); ok {
				i += n
				depth++
				continue
			}
			n := strings.Index(sql[i+2:], "*/")
			if n < 0 {
				return nil, false
			}
			i += 2 + n + 2
		case depth > 0 && strings.HasPrefix(sql[i:], "*/"):
			depth--
			i += 2
		case c == '`' || c == '"' && d.ANSIQuotes:
			s, n, ok := unquote(sql[i:], true)
			if !ok {
				return nil, false
			}
			out = append(out, token{quoted, s, i, i + n})
			i += n
		case c == '\'' || c == '"':
			s, n, ok := unquote(sql[i:], d.NoBackslashEscapes)
			if !ok {
				return nil, false
			}
			// Adjacent literals are one.
			if k := len(out); k > 0 && out[k-1].kind == text && i > out[k-1].to {
				out[k-1].s += s
				out[k-1].to = i + n
			} else {
				out = append(out, token{text, s, i, i + n})
			}
			i += n
		case c >= '0' && c <= '9' || c == '.' && i+1 < len(sql) && sql[i+1] >= '0' && sql[i+1] <= '9' && !afterName(out, i):
			n := numberEnd(sql, i)
			k := number
			if n < len(sql) && isWord(sql[n]) {
				for n < len(sql) && isWord(sql[n]) {
					n++
				}
				k = word // 1e5x is a name, and 0x1F a number that nobody here reads
				if strings.HasPrefix(sql[i:n], "0x") || strings.HasPrefix(sql[i:n], "0b") {
					k = number
				}
			}
			out = append(out, token{k, sql[i:n], i, n})
			i = n
		case isWord(c):
			n := i
			for n < len(sql) && isWord(sql[n]) {
				n++
			}
			// x'..', b'..', n'..' and _charset'..' are literals.
			if n < len(sql) && sql[n] == '\'' && (n == i+1 && strings.ContainsRune("xXbBnN", rune(c)) || c == '_') {
				s, k, ok := unquote(sql[n:], d.NoBackslashEscapes)
				if !ok {
					return nil, false
				}
				if c == '_' || c == 'n' || c == 'N' {
					out = append(out, token{text, s, i, n + k})
				} else {
					out = append(out, token{number, sql[i : n+k], i, n + k})
				}
				i = n + k
				continue
			}
			out = append(out, token{word, sql[i:n], i, n})
			i = n
		default:
			_, n := utf8.DecodeRuneInString(sql[i:])
			out = append(out, token{punct, sql[i : i+n], i, i + n})
			i += n
		}
	}
	for len(out) > 0 && out[len(out)-1].kind == punct && out[len(out)-1].s == ";" {
		out = out[:len(out)-1]
	}
	return out, true
}

func lineEnd(sql string, i int) int {
	if n := strings.IndexByte(sql[i:], '\n'); n >= 0 {
		return i + n + 1
	}
	return len(sql)
}

// versionComment recognises /*!, /*!80000 and /*M!100000 and says how long the
// opening is, if the server executed what is in it.
func versionComment(s string, d Dialect) (int, bool) {
	n := 2
	maria := strings.HasPrefix(s[n:], "M!")
	if maria {
		if !d.MariaDB {
			return 0, false
		}
		n++
	}
	if !strings.HasPrefix(s[n:], "!") {
		return 0, false
	}
	n++
	v, digits := 0, 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' && digits < 6 {
		v = v*10 + int(s[n]-'0')
		n++
		digits++
	}
	if digits == 0 {
		return n, true
	}
	if digits < 5 {
		return 0, false
	}
	// MariaDB leaves out what is meant for MySQL 5.7 and later.
	if d.MariaDB && !maria && v >= 50700 && v <= 99999 {
		return 0, false
	}
	return n, v <= d.Version || d.Version == 0
}

func afterName(out []token, at int) bool {
	if len(out) == 0 {
		return false
	}
	last := out[len(out)-1]
	return last.to == at && (last.kind == word || last.kind == quoted)
}

func numberEnd(sql string, i int) int {
	digits := func() {
		for i < len(sql) && sql[i] >= '0' && sql[i] <= '9' {
			i++
		}
	}
	digits()
	if i < len(sql) && sql[i] == '.' {
		i++
		digits()
	}
	if i < len(sql) && (sql[i] == 'e' || sql[i] == 'E') {
		k := i + 1
		if k < len(sql) && (sql[k] == '+' || sql[k] == '-') {
			k++
		}
		if k < len(sql) && sql[k] >= '0' && sql[k] <= '9' {
			i = k
			digits()
		}
	}
	return i
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c == '@' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// unquote undoes the quotes of a literal or name at the head of s.
func unquote(s string, raw bool) (string, int, bool) {
	q := s[0]
	if i := strings.IndexByte(s[1:], q); i >= 0 && (i+2 >= len(s) || s[i+2] != q) && (raw || strings.IndexByte(s[1:1+i], '\\') < 0) {
		return s[1 : 1+i], i + 2, true
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == q && i+1 < len(s) && s[i+1] == q:
			b.WriteByte(q)
			i++
		case c == q:
			return b.String(), i + 1, true
		case c == '\\' && !raw && i+1 < len(s):
			i++
			switch s[i] {
			case '0':
				b.WriteByte(0)
			case 'b':
				b.WriteByte('\b')
			case 'n':
				b.WriteByte('\n')
			case 'r':
				b.WriteByte('\r')
			case 't':
				b.WriteByte('\t')
			case 'Z':
				b.WriteByte(26)
			case '%', '_':
				b.WriteByte('\\')
				b.WriteByte(s[i])
			default:
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", 0, false
}

// Literal undoes the quotes of a string literal that stands alone.
func Literal(sql string) (string, bool) {
	t, ok := tokenize(sql, Dialect{})
	if !ok || len(t) != 1 || t[0].kind != text {
		return "", false
	}
	return t[0].s, true
}
