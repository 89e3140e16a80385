// Package model searches all interleavings of a few workers that run one task, and
// finds those that break what is promised.
//
//	workers: task.Step itself ── effects ──► store     status node, epoch, journal, position
//	                                └──────► network ► target  progress row, locks, rows
//
// The life cycle of each worker is not modelled: it is host/task's Step, so that
// code and model cannot differ. Around it stand a coordination store, a network
// that delivers what was sent at any later time or never, and a target with row
// locks and sessions. Between any two steps of one worker all others may move, its
// session may expire (a pause needs nothing more), it may crash, and its connection
// may break with the answer under way.
//
// Invariants that are checked in each state:
//
//   - A transactional target has applied the source's transactions in order, each
//     once, and holds just the position after them, which never goes back.
//   - A schema change that commits by itself has happened once.
//   - A status node is deleted only by the execution that it names, and the position
//     in the store never goes back.
//   - An execution whose write was refused has an overlap in the audit, and no
//     certain overlap is there that nothing caused.
//   - Where nothing can move any more all of the source is at the target, also at
//     one that is only idempotent, once its open records are closed.
//
// Each switch of Config takes one protection away; the search must then find a
// counter-example (TestMutations).
//
// What it does not do: it knows one writer with one lane, one task, one store that
// loses nothing, and no clocks.
package model
