package pdk

import (
	"context"
	"path"
)

// Path gives the name under which package os finds a file that a call's
// arguments name: one that does not begin with "/" is below the workspace, /ws,
// whatever ".." it holds; others are virtual paths already.
//
// In a guest the result is a virtual path too. Natively the test's host has a
// folder for it.
func Path(ctx context.Context, name string) string {
	if !path.IsAbs(name) {
		name = path.Join("/ws", path.Clean("/"+name))
	}
	return localPath(ctx, name)
}
