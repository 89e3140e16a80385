package binlog

import "bytes"

// Verb is a statement that controls transactions.
type Verb uint8

// The verbs; Other is every other statement.
const (
	Other Verb = iota
	Begin
	CommitTx
	RollbackTx
	Savepoint
	RollbackTo
	XAStart
	XAEnd
	XACommit
	XARollback
)

// Control recognises the statements that control transactions in the form in
// which the server writes them to the log. Arg is the savepoint's name without
// its quotes, or the name of the XA transaction.
func Control(text []byte) (v Verb, arg []byte) {
	if len(text) == 0 {
		return Other, nil
	}
	switch text[0] | 0x20 {
	case 'b':
		if is(text, "BEGIN") {
			return Begin, nil
		}
	case 'c':
		if is(text, "COMMIT") {
			return CommitTx, nil
		}
	case 's':
		if rest, ok := after(text, "SAVEPOINT "); ok {
			return Savepoint, unquote(rest)
		}
		if is(text, "START TRANSACTION") {
			return Begin, nil
		}
	case 'r':
		if is(text, "ROLLBACK") {
			return RollbackTx, nil
		}
		for _, p := range [...]string{"ROLLBACK TO SAVEPOINT ", "ROLLBACK TO "} {
			if rest, ok := after(text, p); ok {
				return RollbackTo, unquote(rest)
			}
		}
	case 'x':
		for _, p := range [...]struct {
			text string
			v    Verb
		}{{"XA START ", XAStart}, {"XA BEGIN ", XAStart}, {"XA END ", XAEnd}, {"XA COMMIT ", XACommit}, {"XA ROLLBACK ", XARollback}} {
			if rest, ok := after(text, p.text); ok {
				return p.v, bytes.TrimSpace(rest)
			}
		}
	}
	return Other, nil
}

func is(text []byte, word string) bool {
	rest, ok := after(text, word)
	return ok && len(bytes.TrimRight(rest, " ;\x00")) == 0
}

func after(text []byte, prefix string) ([]byte, bool) {
	if len(text) < len(prefix) || !bytes.EqualFold(text[:len(prefix)], []byte(prefix)) {
		return nil, false
	}
	return text[len(prefix):], true
}

func unquote(name []byte) []byte {
	name = bytes.TrimSpace(name)
	if n := len(name); n >= 2 && name[0] == name[n-1] && (name[0] == '`' || name[0] == '"') {
		q := string(name[:1])
		return bytes.ReplaceAll(name[1:n-1], []byte(q+q), []byte(q))
	}
	return name
}
