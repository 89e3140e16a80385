//go:build !faults

package share

// anyPlace gives every subscriber what comes next, whatever place it asked for.
const anyPlace = false

// uncut lets subscribers that the ring has overtaken go on behind the gap.
const uncut = false
