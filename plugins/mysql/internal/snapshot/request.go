package snapshot

// request is what the user asked for and waits to be stored.
type request struct {
	end []byte // position after the items that hold it; nil = not in the stream yet
}
