package daemon

import (
	"errors"
	"fmt"
	"testing"

	"github.com/datalink-go/datalink/host/config"
	"github.com/datalink-go/datalink/host/supervisor"
	"github.com/datalink-go/datalink/sdk"
)

// What makes a start hopeless must outlast the explanation: the exit code follows
// from it, and whether the task is tried again.
func TestExplainKeepsTheKind(t *testing.T) {
	for _, kind := range []error{supervisor.ErrProtocol, supervisor.ErrDigest, supervisor.ErrManifest, supervisor.ErrLevel} {
		inner := fmt.Errorf("%w: plugin p: %w", kind, errors.New("what the library said"))
		c := &connectors{}
		err := c.explain(fmt.Errorf("%w: %w", errors.New("not ready"), inner), config.Connector{}, "w", config.Resolved{})
		if !errors.Is(err, kind) {
			t.Errorf("%v was lost: %v", kind, err)
		}
		if f := startFault(err); f.Retryable || f.Code != sdk.CodeRefused {
			t.Errorf("%v: code %s, retryable %t; want it refused for good", kind, f.Code, f.Retryable)
		}
	}
}
