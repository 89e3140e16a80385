package mysql

import (
	"github.com/datalink-go/datalink/sdk"
)

func (a *applier) bulk(*plan, int) bool { return false }

func (a *applier) load(*plan, []sdk.Change, []int32) (bool, error) { return false, nil }
