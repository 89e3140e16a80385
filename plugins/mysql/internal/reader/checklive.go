package reader

import (
	"context"

	"github.com/datalink-go/datalink/sdk"
)

func (r *Reader) checkLive(ctx context.Context) ([]sdk.Finding, error) {
	c, err := r.dial(ctx)
	if err != nil {
		return nil, err
	}
	return nil, c.Close()
}
