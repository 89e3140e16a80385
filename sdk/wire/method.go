package wire

// Service is the name of the gRPC service; a method's path is
// "/" + Service + "/" + Method.Name.
const Service = "datalink.v1.Connector"

// Names of the methods.
const (
	Describe           = "Describe"
	Configure          = "Configure"
	Check              = "Check"
	Discover           = "Discover"
	Release            = "Release"
	Close              = "Close"
	Ping               = "Ping"
	ParsePosition      = "ParsePosition"
	FormatPosition     = "FormatPosition"
	ComparePositions   = "ComparePositions"
	IntersectPositions = "IntersectPositions"
	UpgradePosition    = "UpgradePosition"
	Open               = "Open"
	Read               = "Read"
	Next               = "Next"
	Durable            = "Durable"
	ReadRange          = "ReadRange"
	ReadKeys           = "ReadKeys"
	Claim              = "Claim"
	Write              = "Write"
	Accept             = "Accept"
	Scan               = "Scan"
	TransformSchema    = "TransformSchema"
	ApplyTransform     = "Transform"
	Snapshot           = "Snapshot"
)

// Method is one call of the protocol.
type Method struct {
	ID     uint32 // number by which a module is called; never given to another method
	Name   string
	Stream bool // both directions; a module does not serve it

	NewRequest func() Message
	NewReply   func() Message
}

// Path returns the method's path in gRPC.
func (m *Method) Path() string { return "/" + Service + "/" + m.Name }

type message[T any] interface {
	*T
	Message
}

func method[Q, A any, PQ message[Q], PA message[A]](id uint32, name string) Method {
	return Method{ID: id, Name: name, NewRequest: func() Message { return PQ(new(Q)) }, NewReply: func() Message { return PA(new(A)) }}
}

func stream[Q, A any, PQ message[Q], PA message[A]](id uint32, name string) Method {
	m := method[Q, A, PQ, PA](id, name)
	m.Stream = true
	return m
}

// Methods returns the table of methods, by ascending ID from 1 on.
func Methods() []Method {
	return []Method{
		method[DescribeRequest, DescribeReply](1, Describe),
		method[ConfigureRequest, ConfigureReply](2, Configure),
		method[CheckRequest, CheckReply](3, Check),
		method[DiscoverRequest, DiscoverReply](4, Discover),
		method[ReleaseRequest, Empty](5, Release),
		method[Empty, Empty](6, Close),
		method[Empty, Empty](7, Ping),
		method[PositionText, Position](8, ParsePosition),
		method[Position, PositionText](9, FormatPosition),
		method[PositionPair, OrderReply](10, ComparePositions),
		method[PositionPair, Position](11, IntersectPositions),
		method[Position, Position](12, UpgradePosition),
		method[OpenRequest, Empty](13, Open),
		stream[ReadRequest, ReadReply](14, Read),
		method[NextRequest, ReadReply](15, Next),
		method[Position, Empty](16, Durable),
		method[RangeRequest, RangeReply](17, ReadRange),
		method[KeysRequest, RangeReply](18, ReadKeys),
		method[ClaimRequest, ClaimReply](19, Claim),
		stream[WriteRequest, WriteReply](20, Write),
		method[WriteRequest, WriteReply](21, Accept),
		method[RangeRequest, RangeReply](22, Scan),
		method[SchemaRequest, SchemaReply](23, TransformSchema),
		method[TransformRequest, TransformReply](24, ApplyTransform),
		method[SnapshotRequest, SnapshotReply](25, Snapshot),
	}
}
