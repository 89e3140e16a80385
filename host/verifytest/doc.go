// Package verifytest runs the real daemon and connectors on real servers: it plants
// differences at targets while the source changes, and lets a late execution write
// what is old. It has tests only.
package verifytest
