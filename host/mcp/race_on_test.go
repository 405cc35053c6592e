//go:build race

package mcp

// raced says that the race detector watches: what is only much of the same is
// made less.
const raced = true
