package coordination

import "context"

// Store is a coordination store. It is safe for concurrent use. Values passed in
// are not kept, values returned belong to the caller. Each call ends with its
// context; one that ended so may or may not have taken effect.
type Store interface {
	// UID is the UUID that the store got at its creation. An older copy put back
	// has the same one.
	UID() string
	// Join opens a session for a worker. ErrExists: a live session has that id.
	Join(ctx context.Context, w Worker) (Session, error)
	// Close ends the sessions of this process and closes the store. It is idempotent.
	Close() error

	Definitions
	Records
}

// Definitions are the tasks.
type Definitions interface {
	// CreateTask stores a new task with a uid of its own. ErrExists: the name is taken.
	CreateTask(ctx context.Context, d Definition) (Definition, error)
	// Task returns a task by name, or ErrNotFound.
	Task(ctx context.Context, name string) (Definition, error)
	// Tasks returns all tasks by name.
	Tasks(ctx context.Context) ([]Definition, error)
	// UpdateTask changes specification, group and desired state where d.Version is
	// the stored one, else ErrVersion.
	UpdateTask(ctx context.Context, d Definition) (Definition, error)
	// DeleteTask removes a task and its progress where version is the stored one.
	// ErrHeld: it has a status node. Journal, epoch and audit records stay.
	DeleteTask(ctx context.Context, name string, version uint64) error
	// Status returns the status node, or ErrNotFound.
	Status(ctx context.Context, name string) (Status, error)
	// Watch returns a channel that is closed at the next change of the task's
	// definition or status node; name "" stands for all definitions and all status
	// nodes. Read after Watch, not before. The channel is also closed when the
	// store closes or ctx ends.
	Watch(ctx context.Context, name string) (<-chan struct{}, error)
	// Progress returns what is stored for a writer; a writer of which nothing is
	// known has an empty one.
	Progress(ctx context.Context, taskUID, writer string) (Progress, error)
	// Writers returns the names of the writers that have progress.
	Writers(ctx context.Context, taskUID string) ([]string, error)
}

// Records are journal, audit and membership. Create-only, refused to nobody.
type Records interface {
	// Append adds an Ended, Lost or Dead entry. The first one of a kind for an
	// execution stays: appending another is a no-op, so that a call whose answer
	// was lost may be repeated. It needs no session.
	Append(ctx context.Context, e Entry) error
	// Journal returns a task's entries in the order of appending.
	Journal(ctx context.Context, taskUID string) ([]Entry, error)
	// AddOverlap creates a record. A record with that id stays as it is.
	AddOverlap(ctx context.Context, o Overlap) error
	// Resolve adds what was done about a record; ErrNotFound: there is no such record.
	Resolve(ctx context.Context, overlapID string, r Resolution) error
	// Overlaps returns all records with their resolutions, oldest first.
	Overlaps(ctx context.Context) ([]Overlap, error)
	// Overlap returns one record, or ErrNotFound.
	Overlap(ctx context.Context, id string) (Overlap, error)
	// Workers returns the live members by id.
	Workers(ctx context.Context) ([]Worker, error)
	// Forget records that a worker is dead.
	Forget(ctx context.Context, f Forgotten) error
	// Forgotten returns all such records, oldest first.
	Forgotten(ctx context.Context) ([]Forgotten, error)
}

// Session is a worker's membership. What it owns goes with it. Conditional calls
// return a FencedError when the status node does not carry the owner's executionId
// and epoch, and ErrSessionLost when the session is known to have ended; then
// nothing was stored.
type Session interface {
	// ID is the store's own.
	ID() string
	// Worker returns the member as it was registered.
	Worker() Worker
	// Lease says how long the session is certain to live. It never blocks.
	Lease() Lease
	// Lost is closed when the session is known to have ended. A session that ends
	// by Close is lost too.
	Lost() <-chan struct{}
	// Take makes an execution: status node, epoch and journal entry in one step.
	// A HeldError names who runs the task; ErrNotFound and ErrVersion concern the
	// definition; ErrExists: the executionId was used before.
	Take(ctx context.Context, t Take) (Status, error)
	// Raise lifts the epoch above a number that a target was found to hold and
	// returns the new status. It checks ownership in the same step.
	Raise(ctx context.Context, o Owner, above uint64) (Status, error)
	// SetState changes what the status node shows.
	SetState(ctx context.Context, o Owner, state, reason string) error
	// Save stores a step of a writer's progress.
	Save(ctx context.Context, o Owner, s Step) error
	// Mark moves the execution's mark in the journal.
	Mark(ctx context.Context, o Owner, positions []Mark) error
	// Release deletes the status node if it carries the owner's executionId,
	// whatever its epoch. A FencedError tells of another execution's; no node at
	// all is no error, nor is a lost session whose node went with it.
	Release(ctx context.Context, o Owner) error
	// Close ends the session and deletes its nodes. It is idempotent.
	Close(ctx context.Context) error
}
