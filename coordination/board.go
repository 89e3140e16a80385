package coordination

import "context"

// Note is a small shared document of a Board.
type Note struct {
	Name  string
	Value []byte // JSON
}

// Board is the ability of a store that several workers share: small documents in
// folders, by which they agree who runs what. Names are free text.
type Board interface {
	// Notes returns the notes of a folder by name.
	Notes(ctx context.Context, folder string) ([]Note, error)
	// Note returns the value of one note, nil where there is none.
	Note(ctx context.Context, folder, name string) ([]byte, error)
	// Put creates or replaces a note.
	Put(ctx context.Context, folder, name string, value []byte) error
	// Remove deletes a note; one that is not there is no error.
	Remove(ctx context.Context, folder, name string) error
	// Some returns the tasks of these names that are there.
	Some(ctx context.Context, names []string) ([]Definition, error)
	// Changes returns a channel that is closed at the next change of what the topics
	// name, when the store closes or ctx ends. Read after it, not before.
	Changes(ctx context.Context, topics ...Topic) (<-chan struct{}, error)
}

// Topic is something whose changes can be waited for: a folder's notes by name, one
// note's value, the members, or definitions of tasks.
type Topic struct{ Folder, Note, Task string }

// Topics that are not notes.
var (
	Members     = Topic{Folder: "\x00members"}
	AllTasks    = Topic{Folder: "\x00tasks"} // names and definitions
	TasksByName = Topic{Folder: "\x00names"}
)

// Candidate is the ability of a Session to lead and to own notes.
type Candidate interface {
	// Campaign makes this session the leader and returns its term, greater than all
	// before it. ErrHeld: another leads.
	Campaign(ctx context.Context) (term uint64, err error)
	// PutAs replaces notes as the leader of a term, all or nothing; a nil value
	// removes. ErrFenced: this session does not lead in that term.
	PutAs(ctx context.Context, term uint64, folder string, notes map[string][]byte) error
	// Offer creates or replaces a note that goes with the session. ErrExists: it is
	// another's.
	Offer(ctx context.Context, folder, name string, value []byte) error
}

// LeaderFolder and LeaderNote are where the leader's note is.
const (
	LeaderFolder = "leader"
	LeaderNote   = "now"
)

// Leader is the value of the leader's note.
type Leader struct {
	Worker string `json:"worker"`
	Term   uint64 `json:"term"`
}
