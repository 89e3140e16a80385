package link

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/wire"
)

// faultType is the type of the status detail that carries a fault.
const faultType = "type.googleapis.com/datalink.v1.Fault"

// Status turns an error of a connector into a gRPC status that carries it as a
// fault. The status code is for tools: the host looks at the fault.
func Status(err error) error {
	if err == nil {
		return nil
	}
	f := sdk.AsFault(err)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		f = &sdk.Fault{Code: sdk.CodeDeadline, Message: f.Message, Retryable: true}
	}
	p := status.New(statusCode(f.Code), strings.ToValidUTF8(f.Message, "\uFFFD")).Proto()
	p.Details = []*anypb.Any{{TypeUrl: faultType, Value: (&wire.Fault{Fault: *f}).Append(nil)}}
	return status.FromProto(p).Err()
}

func statusCode(c sdk.Code) codes.Code {
	switch c {
	case sdk.CodeInternal:
		return codes.Internal
	case sdk.CodeUnimplemented:
		return codes.Unimplemented
	case sdk.CodeDeadline:
		return codes.DeadlineExceeded
	case sdk.CodeTooLarge:
		return codes.ResourceExhausted
	case sdk.CodeInvalidConfig, sdk.CodeInvalidPosition:
		return codes.InvalidArgument
	case sdk.CodeUnauthorized:
		return codes.PermissionDenied
	case sdk.CodeFenced, sdk.CodeTargetWentBack, sdk.CodeForeignClaim, sdk.CodeCommitUnknown:
		return codes.Aborted
	}
	return codes.FailedPrecondition
}

// Fault is the inverse of Status. Statuses without a fault come from the
// transport: too large a message, a deadline, a lost connection. Call names what
// was tried.
func Fault(call string, err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, d := range s.Proto().GetDetails() {
		var f wire.Fault
		if d.GetTypeUrl() == faultType && f.Decode(d.GetValue()) == nil {
			return &f.Fault
		}
	}
	switch s.Code() {
	case codes.ResourceExhausted:
		return sdk.Faultf(sdk.CodeTooLarge, "%s: message over the limit: %s", call, s.Message()).
			Suggest("raise the limits of message and block on both sides, or lower the size at which blocks are sent")
	case codes.DeadlineExceeded:
		return sdk.Faultf(sdk.CodeDeadline, "%s: no answer in time", call).Retry()
	case codes.Canceled:
		return context.Canceled
	case codes.Unavailable:
		return sdk.Faultf(sdk.CodeUnavailable, "%s: connection to the plugin: %s", call, s.Message()).Retry()
	case codes.Unimplemented:
		return sdk.Faultf(sdk.CodeUnimplemented, "%s: the plugin has no such call: %s", call, s.Message())
	}
	return sdk.Faultf(sdk.CodeInternal, "%s: %s", call, s.Message())
}
