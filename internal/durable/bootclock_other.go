//go:build !linux

package durable

// BootClock returns the clock that a daemon runs on. Where the system offers no
// clock that counts sleep, the wall clock does: the earlier end wins.
func BootClock() Clock { return Clock{} }
