package main

import "runtime/debug"

// Past this the collector works harder rather than let the heap run into the
// 256 MiB that the manifest asks for.
func init() { debug.SetMemoryLimit(160 << 20) }
