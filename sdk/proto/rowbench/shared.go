package rowbench

import "github.com/datalink-go/datalink/sdk/batch"

// Rows are the rows of the comparison, for comparisons of more than codecs.
type Rows struct {
	rows [][]cell
	p    *packed
	m    *messages
	sum  checksum
}

// NewRows returns n rows, always the same. A Rows is not safe for concurrent use.
func NewRows(n int) *Rows { return &Rows{rows: makeRows(n), p: newPacked(), m: newMessages()} }

// Append appends the row i modulo n to an open transaction of b.
func (r *Rows) Append(b *batch.Builder, i int) error {
	return r.p.row(b, r.rows[i%len(r.rows)])
}

// Message returns the row i modulo n as a message, valid until the next call.
func (r *Rows) Message(i int) *Row {
	r.m.fill(uint64(i), r.rows[i%len(r.rows)])
	return &r.m.out
}

// Messages returns rows from i on, each as a message with its length before it;
// valid until the next call.
func (r *Rows) Messages(i, n int) ([]byte, error) {
	i %= len(r.rows)
	return r.m.encode(r.rows[i:min(i+n, len(r.rows))])
}

// ReadBlock reads every value of a block and returns the count of its rows.
func (r *Rows) ReadBlock(data []byte) (int, error) {
	err := r.p.decode(data, &r.sum)
	return r.p.block.Len(), err
}

// ReadMessage reads every value of a message.
func (r *Rows) ReadMessage(m *Row) error { return readMessage(m, &r.sum) }

// ReadMessages reads what Messages returned.
func (r *Rows) ReadMessages(data []byte) error { return r.m.decode(data, &r.sum) }

// Sum returns the checksum of all values read so far and begins anew.
func (r *Rows) Sum() uint64 {
	s := uint64(r.sum)
	r.sum = 0
	return s
}
