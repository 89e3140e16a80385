package server

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Error is an error as the server reports it.
type Error struct {
	Code    uint16
	State   string
	Message string
}

// Error returns number and text.
func (e *Error) Error() string {
	if e.State == "" {
		return fmt.Sprintf("server error %d: %s", e.Code, e.Message)
	}
	return fmt.Sprintf("server error %d (%s): %s", e.Code, e.State, e.Message)
}

// Code returns the number of the server's error in err's chain, or 0.
func Code(err error) uint16 {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// AsError decodes an ERR packet; nil for others.
func AsError(packet []byte) error {
	if len(packet) < 3 || packet[0] != 0xff {
		return nil
	}
	e := &Error{Code: binary.LittleEndian.Uint16(packet[1:])}
	text := packet[3:]
	if len(text) >= 6 && text[0] == '#' {
		e.State, text = string(text[1:6]), text[6:]
	}
	e.Message = string(text)
	return e
}

// ErrNoTLS is wrapped where TLS is demanded and the server has none.
var ErrNoTLS = errors.New("the server offers no TLS")

// ErrAuth is wrapped where the way of login is not possible.
var ErrAuth = errors.New("login")

// ErrBroken is wrapped where a connection was lost in the middle of an exchange.
var ErrBroken = errors.New("connection")
