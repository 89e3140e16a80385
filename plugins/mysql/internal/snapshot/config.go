package snapshot

import (
	"context"
	"time"

	"github.com/datalink-go/datalink/plugins/mysql/internal/server"
)

// Options are the user's options.
type Options struct {
	ChunkRows        int           `config:"chunkRows" doc:"rows read by one statement at most; large rows make it fewer" default:"20000" min:"1" max:"1000000"`
	Parallel         int           `config:"parallel" doc:"connections that read at once, tables and parts of tables" default:"4" min:"1" max:"64"`
	MaxRowsPerSecond int           `config:"maxRowsPerSecond" doc:"rows read a second by all connections together; 0 = no limit" default:"0" min:"0"`
	StatementTimeout time.Duration `config:"statementTimeout" doc:"longest a statement that reads a chunk may take at the server; tables without a key are not bounded" default:"10m"`
}

// Config is what a Weaver is made with.
type Config struct {
	Options
	// All says that every wanted table that has no progress is read.
	All bool
	// Step is the highest step that a stored position has.
	Step uint64
	// SourceName goes into schemas.
	SourceName string
	// Memory bounds the bytes of rows that were read and not yet handed over;
	// 0 = 32 MiB.
	Memory int
	// Piece is how many bytes of rows are handed over as one transaction; 0 = 2 MiB.
	Piece int
	// Session is how long a consistent snapshot is used; 0 = 2 s.
	Session time.Duration

	Switches Switches
}

// Switches turn single guarantees off, so that a test can show what each of them
// prevents. The zero value has all of them on.
type Switches struct {
	NoWait     bool // MySQL: do not wait for what was delivered to become visible
	Executed   bool // MySQL: take gtid_executed for the upper end
	BinlogPos  bool // MariaDB: take gtid_binlog_pos for the place of the snapshot
	KeepChange bool // do not leave out rows that the stream has changed meanwhile
}

// Source is the reader whose stream the rows are woven into.
type Source interface {
	// Dial connects to the server that the stream is read from. It may be called
	// from any goroutine.
	Dial(ctx context.Context) (*server.Conn, error)
	// Position returns the bytes of the position at which the stream stands, with a
	// step; 0 is the position itself. It is called from Weave alone.
	Position(step uint64) []byte
	// Wants reports whether a table is read. It may be called from any goroutine.
	Wants(database, table string) bool
}

// Next is what the reader does after Weave.
type Next uint8

// What the reader does: Go reads on. More hands over and calls Weave again before
// it reads an event. Hold reads nothing until Ready, then calls Weave again.
const (
	Go Next = iota
	More
	Hold
)

func (c Config) withDefaults() Config {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&c.ChunkRows, 20000)
	def(&c.Parallel, 4)
	def(&c.Memory, 32<<20)
	def(&c.Piece, 2<<20)
	if c.Session <= 0 {
		c.Session = 2 * time.Second
	}
	return c
}
