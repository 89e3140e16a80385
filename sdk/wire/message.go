package wire

import (
	"github.com/datalink-go/datalink/sdk"
	"github.com/datalink-go/datalink/sdk/batch"
)

// Message is one message of the protocol.
type Message interface {
	// Append appends the encoded message to dst.
	Append(dst []byte) []byte
	// Decode reads the message; bytes fields refer to data.
	Decode(data []byte) error
}

// Limits are the sizes both sides keep to; 0 = the receiver's default.
type Limits struct {
	Message            uint64 // bytes of one message
	Record             uint64 // bytes of one event
	Block              uint64 // bytes of one block
	Full               uint64 // bytes at which a block is sent
	Events             uint64 // events at which a block is sent
	WindowRecords      uint64 // records not yet acknowledged
	WindowBytes        uint64
	TransactionRecords uint64 // a larger source transaction may be split at the target; 0 = never
	TransactionBytes   uint64
}

// Problem is one fault of a configuration.
type Problem = sdk.Problem

// The messages; datalink.proto says what each field means.
type (
	Empty           struct{}
	DescribeRequest struct {
		Protocol     uint32
		Capabilities []string
	}
	DescribeReply    struct{ Manifest []byte }
	ConfigureRequest struct {
		Role, Task, Name string
		Config           []byte
		Limits           Limits
		LogLevel         string
		FailPoints       []string
	}
	ConfigureReply struct {
		Problems     []Problem
		Limits       Limits
		Capabilities []string
		Level        string
		Lanes        uint32
	}
	CheckRequest    struct{}
	CheckReply      struct{ Findings []sdk.Finding }
	DiscoverRequest struct{ After string }
	DiscoverReply   struct {
		Schemas [][]byte
		More    bool
	}
	ReleaseRequest struct{ TaskUID string }
	Position       struct{ sdk.Position }
	PositionText   struct{ Text string }
	PositionPair   struct{ A, B sdk.Position }
	OrderReply     struct{ Order sdk.Order }
	OpenRequest    struct {
		Execution sdk.Execution
		Points    []sdk.Point
		State     []batch.StateItem
	}
	ReadRequest struct{ Records, Bytes, Taken uint64 }
	NextRequest struct{ WaitMicros uint64 }
	ReadReply   struct {
		Block       []byte
		First, Last sdk.Position
		End         bool
		Fault       *sdk.Fault
	}
	RangeRequest struct {
		Schema, Lo, Hi []byte
		Rows           uint64
		Keys           [][]byte
	}
	KeysRequest struct {
		Schema []byte
		Keys   [][]byte
	}
	RangeReply struct {
		Block          []byte
		Low, High      sdk.Position
		More           bool
		RestLo, RestHi []byte
	}
	ClaimRequest struct{ Execution sdk.Execution }
	ClaimReply   struct{ sdk.Claimed }
	WriteRequest struct {
		Seq            uint64
		Attempt        uint32
		Block          []byte
		First, Last    sdk.Position
		DeadlineMicros int64
		VersionBase    uint64
		Ceiling        uint64
		SetAside       []sdk.DeadLetter
		Dropped        []uint64
		Drain          bool
		Split          bool
		Lanes          []int64
		Behind         []int64
	}
	WriteReply struct {
		Accepted, Acked uint64
		Attempt         uint32
		FailedSeq       uint64
		Records         []RecordFault
		Fault           *sdk.Fault
		Points          []sdk.Point
		Skipped         uint64
	}
	RecordFault struct {
		Index uint64
		Fault sdk.Fault
	}
	SchemaRequest struct{ Schema []byte }
	SchemaReply   struct {
		Drop   bool
		Schema []byte
		Pass   bool
	}
	TransformRequest struct {
		Block   []byte
		Schemas []uint64
	}
	TransformReply struct{ Block []byte }
)
