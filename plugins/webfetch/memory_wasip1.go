package main

import "runtime/debug"

// A call is over and its memory gone before a collection would pay: the
// collector, which shares the guest's one thread, begins only where the heap
// nears the 256 MiB that the manifest asks for.
func init() {
	debug.SetMemoryLimit(160 << 20)
	debug.SetGCPercent(-1)
}
