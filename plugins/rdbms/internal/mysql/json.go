package mysql

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// jsonDepth is how deep documents of MySQL may nest.
const jsonDepth = 100

// jsonExact reports whether the JSON type of MySQL keeps all of a document but
// blanks and the order of names: it keeps the last of equal names, and numbers
// as 64-bit integers or doubles.
func jsonExact(text []byte) bool {
	if simpleJSON(text) {
		return true
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	type level struct {
		names map[string]bool // nil in an array
		value bool            // a name was read
	}
	var in []level
	for {
		t, err := d.Token()
		if err != nil {
			return true // the server says what is wrong with it, or it has ended
		}
		top := len(in) - 1
		switch t := t.(type) {
		case json.Delim:
			switch t {
			case '{', '[':
				if top >= 0 {
					in[top].value = false
				}
				l := level{}
				if t == '{' {
					l.names = map[string]bool{}
				}
				if in = append(in, l); len(in) > jsonDepth {
					return false
				}
			default:
				in = in[:top]
			}
			continue
		case string:
			if top >= 0 && in[top].names != nil && !in[top].value {
				if in[top].names[t] {
					return false
				}
				in[top].names[t], in[top].value = true, true
				continue
			}
		case json.Number:
			if !numberExact(t.String()) {
				return false
			}
		}
		if top >= 0 {
			in[top].value = false
		}
	}
}

// simpleJSON says of a document at once that it has neither objects nor long
// numbers.
func simpleJSON(text []byte) bool {
	run := 0
	for _, c := range text {
		switch {
		case c == '{', c == '[':
			return false
		case c >= '0' && c <= '9':
			if run++; run > 15 {
				return false
			}
		case c == 'e', c == 'E', c == '.':
		default:
			run = 0
		}
	}
	return true
}

// numberExact reports whether a number is a 64-bit integer or the decimal digits
// of a double.
func numberExact(s string) bool {
	if !strings.ContainsAny(s, ".eE") {
		if _, err := strconv.ParseInt(s, 10, 64); err == nil {
			return s != "-0"
		}
		_, err := strconv.ParseUint(s, 10, 64)
		return err == nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) {
		return false
	}
	return significant(s) == significant(strconv.FormatFloat(f, 'e', -1, 64))
}

// significant brings a decimal number to digits and exponent without zeros that
// say nothing.
func significant(s string) string {
	mantissa, exp, _ := strings.Cut(strings.ToLower(s), "e")
	e, _ := strconv.Atoi(exp)
	sign := ""
	if strings.HasPrefix(mantissa, "-") {
		sign, mantissa = "-", mantissa[1:]
	}
	whole, part, _ := strings.Cut(mantissa, ".")
	e -= len(part)
	d := strings.TrimLeft(whole+part, "0")
	t := strings.TrimRight(d, "0")
	e += len(d) - len(t)
	if t == "" {
		return "0"
	}
	return sign + t + "e" + strconv.Itoa(e)
}
