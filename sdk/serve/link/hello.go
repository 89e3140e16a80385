package link

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// Hello is the first line that the host writes to the plugin's standard input.
type Hello struct {
	PID     int      `json:"pid"` // of the host
	UID     int      `json:"uid"`
	Message uint64   `json:"message"` // limit of a message in bytes; 0 = the default
	TLS     *KeyPair `json:"tls,omitempty"`
}

// helloLimit bounds the line: two certificates and a key take 3 KB.
const helloLimit = 64 << 10

// Write writes the hello as one line.
func (h *Hello) Write(w io.Writer) error {
	line, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// ReadHello reads the line and nothing behind it that is not buffered by r.
func ReadHello(r *bufio.Reader) (*Hello, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); err == nil {
			break
		}
		if err != bufio.ErrBufferFull {
			return nil, fmt.Errorf("read hello on standard input: %w after %d bytes", err, len(line))
		}
		if len(line) > helloLimit {
			return nil, fmt.Errorf("read hello on standard input: no end of line in %d bytes", len(line))
		}
	}
	h := new(Hello)
	if err := json.Unmarshal(line, h); err != nil {
		return nil, fmt.Errorf("read hello on standard input: %w", err)
	}
	return h, nil
}
