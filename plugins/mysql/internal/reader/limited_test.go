package reader

import (
	"context"
	"io"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// limited is a reader that dies after some blocks.
type limited struct {
	sdk.Reader
	left int
}

func (l *limited) Next(ctx context.Context, out *batch.Builder) error {
	if l.left--; l.left < 0 {
		return io.EOF
	}
	return l.Reader.Next(ctx, out)
}
