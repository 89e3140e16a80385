// Package delivery turns the stream of blocks that a host sends to a writer into
// calls of that writer: merged to net effect, ordered, split among lanes, fenced
// and committed together with the progress they make.
//
// It serves plugin processes (package serve), modules and tests alike, and links
// the standard library and the SDK alone.
//
// Invariants:
//
//   - A change is skipped when the lane that it belongs to covers its
//     transaction (batch.Cover), never because of a comparison of positions.
//   - Changes of one key stay in one lane and in order. Changes that share a
//     unique value or are tied by a foreign key are never in one segment, never
//     in flight side by side, and never merged across one another.
//   - A target transaction ends between source transactions. It ends inside one,
//     by ordinal, only where that exceeds the stated limit, around a schema
//     change, where one lane waits for another, or where the host asks for it.
//   - A lane's stored position covers exactly the changes that were committed in
//     it, rises with every commit, and never goes back.
//   - Acknowledged is what is committed in all lanes.
//
// Life cycle of an Engine:
//
//  1. New looks at which writer interface the target implements.
//  2. Claim takes the target and sets up the lanes it holds.
//  3. Run serves one stream: blocks are taken, prepared and handed to the lanes,
//     each of which makes target transactions of what waits for it; replies say
//     what was accepted and what is durable.
//  4. When the stream ends, what is complete is committed, all lanes are brought
//     to one position, and Run returns. Another Run needs another Claim.
//
// Parts: dispatch.go reads blocks, place.go says where lanes may stand, spread.go,
// barrier.go and publish.go give events to lanes, lane.go makes batches, segment.go
// and merge.go make segments of changes, touch.go and wait.go say what is tied to
// what, track.go follows rows whose keys are swapped, deliver.go is Fence → Apply →
// Commit, reply.go keeps what is acknowledged, relane.go changes the lane count.
//
// What a reader must see to: a transaction's End is empty where the position would
// neither hold nor be held by a point given to Open, which only a change of the
// source's server can bring about; Start names the open transaction where
// positions are sets.
//
// What the package does not do: it parses no positions, decides no policy about
// records that cannot be written (the host sends again without them), and stores
// nothing.
package delivery
