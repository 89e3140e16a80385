// Package embedded is the coordination store of a single node: one bbolt file,
// state.db, in the data directory, owned by one process at a time.
//
// Invariants:
//
//   - The file "lock" beside it is held with flock(2) as long as the store is open.
//     The open file can be handed to child processes (LockFile), which keeps the
//     lock until the last of them is gone. Close closes the descriptor and never
//     unlocks, or a child's share would be lost.
//   - Who gets the lock ends all sessions of the owners before: their status nodes
//     and memberships are deleted at Open.
//   - A session has no time-out: nobody else can open the store while its process
//     or a child lives. Lease().Timeout is 0.
//   - Each call is one bbolt transaction, durable when the call returns.
//
// Life cycle: Open, use, Close. Opening while another process has the lock is a
// LockedError that names its pid.
//
// # Layout of state.db
//
// All values are JSON, all keys are text, so that `bbolt get` or any other tool
// reads them. Buckets:
//
//	meta           format, uid, createdAt
//	tasks          NAME → coordination.Definition
//	status         TASK_UID → coordination.Status
//	epochs         TASK_UID → {"epoch": n}
//	journal        TASK_UID → bucket: SEQ (20 digits) → coordination.Entry
//	journal-index  TASK_UID → bucket: EXECUTION_ID/KIND → "SEQ"
//	progress       TASK_UID → bucket: WRITER → bucket:
//	                 head → coordination.Progress without the lists below
//	                 point/LANE, item/KEY, dead/NUMBER (20 digits) → one each
//	overlaps       ID → coordination.Overlap
//	resolutions    OVERLAP_ID/ID → coordination.Resolution
//	forgotten      AT (20 digits, Unix ns)/WORKER → coordination.Forgotten
//	workers        ID → coordination.Worker
//
// What the package does not do: it lets no second process in, not even to read;
// bbolt's readers would have to wait for the writer's lock.
package embedded
