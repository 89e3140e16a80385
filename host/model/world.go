package model

import (
	"github.com/datalink-go/datalink/host/task"
)

// Config bounds the search.
type Config struct {
	Workers int
	Txs     uint8 // transactions of the source; the n-th sets the one row to n
	DDL     uint8 // this one is a schema change that commits by itself; 0 = none
	Packet  bool  // a transaction is one packet, else the fence is answered first
	Level   Level
	Expire  int8 // sessions that may expire
	Crash   int8 // workers that may crash
	Cut     int8 // connections to the target that may break
	Stop    int8 // planned moves
	Again   int8 // executions that may start after the first of each worker
	Without Protection
	Limit   int // states; 0 = 20 million
}

// Level of the writer.
type Level uint8

// The levels.
const (
	Transactional Level = iota
	Idempotent
)

// Protection is what a mutation takes away.
type Protection uint8

// The protections.
const (
	Nothing     Protection = iota
	Fence                  // the progress row is updated whatever it holds
	Conditional            // the store takes positions and releases from anybody
	Wait                   // a claim neither ends the sessions before it nor waits for their locks
	Repair                 // an idempotent target is not repaired after an unproven predecessor
)

const (
	maxWorkers = 3
	maxTxs     = 4
	maxFlights = 6
	maxExecs   = 8
)

// pipe is where in writing a worker is.
type pipe uint8

const (
	idle    pipe = iota
	fencing      // the fence was sent
	fenced       // it matched
	writing      // the rest was sent
	broken       // the answer is lost: to be settled
	noting       // the ordinal of a schema change was sent
	noted
	altering // the schema change was sent
	altered
	saving // an idempotent write is durable, the position is not
)

// worker is one process.
type worker struct {
	alive   bool
	expired bool // its session
	told    bool // and it knows
	exec    uint8
	st      life
	todo    [8]do
	n       uint8
	aborted bool
	timer   bool

	conn    uint8 // session at the target; 0 = none
	claimed uint8 // step of the claim
	pipe    pipe
	opened  bool
	claimNo uint8
	batch   uint8
	pos     uint8
	ddl     bool // the change at pos+1 has happened
	owes    bool // a write was refused and the overlap is not recorded
	repair  uint8
}

// do is a slow effect in the order asked for.
type do struct {
	kind    uint8 // place in effects
	epoch   uint8
	unclear bool
}

func (d do) is(k task.EffectKind) bool { return effects[d.kind] == k }

// packet is on its way to the target.
type packet struct {
	session uint8
	kind    pipe // that of the sender when it was sent
	exec    uint8
	epoch   uint8
	claim   uint8
	batch   uint8 // number it moves to
	tx      uint8
}

// session is a connection as the target sees it.
type session struct {
	dead bool
	open bool // a fenced transaction is open
	next packet
}

// world is everything. It is copied for each step.
type world struct {
	owner      uint8 // execution in the status node
	ownerEpoch uint8
	epoch      uint8
	started    uint16 // executions by bit
	ended      uint16
	unclear    uint16 // ended with a write under way
	lost       uint16
	dead       uint16 // executions whose process is gone
	proven     uint16
	certain    uint16 // executions with a certain overlap
	suspected  uint16
	stored     uint8 // position in the store
	execs      uint8
	runs       [maxExecs]uint8 // worker of each execution

	row      uint8
	applied  [maxTxs + 2]uint8
	nApplied uint8
	tables   uint8 // how often the schema change happened
	rowEpoch uint8
	rowExec  uint8
	rowClaim uint8
	rowBatch uint8
	rowPos   uint8
	rowNote  uint8 // the schema change that is about to happen
	lock     uint8 // session that holds the writer's lock
	holder   uint8 // session with an open transaction
	sessions [16]session
	nSession uint8
	flights  [maxFlights]packet
	nFlight  uint8

	workers [maxWorkers]worker
	expire  int8
	crash   int8
	cut     int8
	stops   int8
	again   int8
	broken  string // the promise that was broken
}
