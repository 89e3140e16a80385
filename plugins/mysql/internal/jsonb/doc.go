// Package jsonb turns the binary form of MySQL's JSON documents into the text
// that the server prints, and applies the differences of partial updates.
//
// Facts are from sql-common/json_binary.h (layout), json_dom.cc (text) and
// sql-common/json_diff.cc (differences) of MySQL.
//
// Invariants: every offset and length is checked against the bytes that are
// there; nesting is bounded as the server bounds it.
package jsonb
