package pdk

import "context"

// Path says where a virtual path such as "/ws/notes.md" is for package os. In
// a guest that is the name itself; natively the test's host has a folder for it.
// A plugin that is not tested natively need not call it.
func Path(ctx context.Context, name string) string { return localPath(ctx, name) }
