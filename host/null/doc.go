// Package null is the built-in writer that keeps nothing: it decodes every value
// of every row and sums it up, so that a pipeline can be measured or checked
// without a target.
package null
