// Package rowbench compares the packed block with one protobuf message a row, on
// the same rows of 20 columns and about 310 bytes: encode, decode, every value
// read. Measure runs both in turn, so that a disturbance of the machine meets
// both, and gives the ratio of each round.
//
// The protobuf side reuses what its library lets it reuse: the message, the values
// in it when it encodes, and the buffer. It lives here, under proto, because
// sdk/batch never links protobuf.
package rowbench
