package share

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// answerTimeout is how long a reader that has caught up waits for a relay's answer;
// one that has no answer by then is taken for stopped.
const answerTimeout = 300 * time.Millisecond

// Errors of Join.
var (
	ErrNone    = errors.New("there is no relay")
	ErrRefused = errors.New("the relay does not have the place")
)

// Ask is what a reader tells a relay.
type Ask struct {
	Server string `json:"server"` // its UUID
	Task   string `json:"task"`   // a later subscription of a task ends an earlier one
	File   string `json:"file"`
	Offset int64  `json:"offset"` // between two transactions
}

// Join asks the relay of that name for what follows a place. Packets come from the
// connection, the first with the sequence number seq.
func Join(ctx context.Context, name string, ask Ask) (c net.Conn, seq byte, err error) {
	d := net.Dialer{Timeout: answerTimeout}
	conn, err := d.DialContext(ctx, "unix", name)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, 0, ErrNone
	}
	if err != nil {
		return nil, 0, fmt.Errorf("relay: %w", err)
	}
	u := conn.(*net.UnixConn)
	if seq, err = ask.over(u); err != nil {
		_ = u.Close()
		return nil, 0, err
	}
	return u, seq, nil
}

func (a *Ask) over(u *net.UnixConn) (seq byte, err error) {
	if err := ours(u); err != nil {
		return 0, err
	}
	_ = u.SetDeadline(time.Now().Add(answerTimeout))
	defer func() { _ = u.SetDeadline(time.Time{}) }()
	text, err := json.Marshal(a)
	if err != nil {
		return 0, err
	}
	if _, err := u.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(text))), text...)); err != nil {
		return 0, fmt.Errorf("relay: %w", err)
	}
	var answer [2]byte
	if _, err := io.ReadFull(u, answer[:]); err != nil {
		return 0, fmt.Errorf("relay: %w", err)
	}
	if answer[0] != 1 {
		return 0, ErrRefused
	}
	return answer[1], nil
}

// readAsk is the relay's side of Ask.
func readAsk(u *net.UnixConn) (a Ask, err error) {
	if err := ours(u); err != nil {
		return a, err
	}
	_ = u.SetDeadline(time.Now().Add(answerTimeout))
	defer func() { _ = u.SetDeadline(time.Time{}) }()
	var size [2]byte
	if _, err := io.ReadFull(u, size[:]); err != nil {
		return a, err
	}
	text := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(u, text); err != nil {
		return a, err
	}
	return a, json.Unmarshal(text, &a)
}
