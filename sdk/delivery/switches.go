//go:build !faults

package delivery

func (s Switches) withEnv() Switches { return s }
