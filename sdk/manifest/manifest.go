package manifest

import "encoding/json"

// Versions of the protocol between host and plugin that this source speaks.
const (
	ProtocolMin uint32 = 1
	ProtocolMax uint32 = 2
)

// Role is what a connector is used as. One plugin may have several.
type Role string

// The roles.
const (
	Reader    Role = "reader"
	Writer    Role = "writer"
	Transform Role = "transform"
)

// Level is what a writer promises when it is run twice or late.
type Level string

// The levels, weakest first.
const (
	LevelNone          Level = ""
	LevelIdempotent    Level = "idempotent"
	LevelVersioned     Level = "versioned"
	LevelTransactional Level = "transactional"
)

// Manifest describes a plugin.
type Manifest struct {
	Name        string         `json:"name"`
	Version     string         `json:"version"`
	Summary     string         `json:"summary,omitempty"`
	ProtocolMin uint32         `json:"protocolMin"`
	ProtocolMax uint32         `json:"protocolMax"`
	BatchFormat uint32         `json:"batchFormat"`
	Roles       map[Role]Facet `json:"roles"`
	Kind        string         `json:"kind"`                // "process" or "wasm"
	Platforms   []Platform     `json:"platforms,omitempty"` // where the files are
	Grants      Grants         `json:"grants"`
	Conformance *Report        `json:"conformance,omitempty"`
}

// Facet is what a plugin is in one role.
type Facet struct {
	Level        Level           `json:"level,omitempty"`        // writers: derived from the code, proven by the kit
	Capabilities []string        `json:"capabilities,omitempty"` // see the constants below
	ConfigSchema json.RawMessage `json:"configSchema,omitempty"` // JSON Schema of the configuration
}

// Capabilities of a connector, beside those that follow from its level.
const (
	CanDiscover  = "discover"
	CanRelease   = "release"
	CanReadRange = "read-range"
	CanReadKeys  = "read-keys"
	CanSnapshot  = "snapshot" // takes tables anew while the stream runs
	CanScan      = "scan"
	CanPositions = "stores-positions" // Claim returns points
	CanLanes     = "lanes"            // more than one lane
	FlatNames    = "flat-names"       // tables have no namespace: the host names them
	WantsMerged  = "wants-merged"     // non-Go writers: batches merged and split by lane by the host
	WantsDurable = "wants-durable"    // readers whose source waits: Durable comes as soon as more is stored
)

// Platform is one built file of a plugin.
type Platform struct {
	OS     string `json:"os,omitempty"` // empty for wasm
	Arch   string `json:"arch,omitempty"`
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
}

// Grants is what a plugin asks for; an operator gives it or not.
type Grants struct {
	Hosts    []string `json:"hosts,omitempty"`
	Secrets  []string `json:"secrets,omitempty"`
	State    bool     `json:"state,omitempty"`
	MemoryMB uint32   `json:"memoryMB,omitempty"`
}

// Report says which conformance kit a plugin passed.
type Report struct {
	Kit    string   `json:"kit"`
	Passed []string `json:"passed"`
	At     string   `json:"at"`
}
