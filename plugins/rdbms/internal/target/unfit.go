package target

import (
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Unfit is the fault of a value that the target cannot hold. Dead letters and
// errors are the same to a writer: the host decides what becomes of the record.
func Unfit(s *batch.Schema, column int, format string, args ...any) *sdk.Fault {
	f := sdk.Faultf(sdk.CodeUnfit, format, args...)
	f.Message = "table " + s.Name() + ", column " + s.Columns[column].Name + ": " + f.Message
	return f.Suggest("widen the column in the target, or set onUnfit: null or truncate")
}

// Choice is what the policy does with a value that does not fit.
type Choice uint8

// The choices.
const (
	Report  Choice = iota // the record is refused
	SetNull               // NULL is written
	Cut                   // the nearest value is written, where there is one
)

// Choose says what becomes of a value that does not fit. Nullable is of the
// column of the target; cuttable says that there is a nearest value.
func (o *Options) Choose(nullable, cuttable bool) Choice {
	switch {
	case o.OnUnfit == Null && nullable:
		return SetNull
	case o.OnUnfit == Truncate && cuttable:
		return Cut
	case o.OnUnfit == Truncate && nullable:
		return SetNull
	}
	return Report
}
