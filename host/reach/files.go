package reach

import (
	"context"
	"io/fs"

	"github.com/elfhost/elfhost/host/policy"
)

// Tree is the virtual root: "/ws" is the workspace, other mounts lie beside
// it. It is opened once a session and safe for concurrent use; Close it.
// Names are absolute virtual paths ("/ws/a/b"). Errors are *fs.PathError with
// the virtual path, wrapping fs.ErrNotExist, a *policy.Denial, and so on.
type Tree struct {
	mounts []Mount
}

// Mount puts a host folder at a virtual path of one component.
type Mount struct {
	Name     string // "/ws"
	Dir      string // absolute path on the host
	ReadOnly bool
	Hidden   bool // readable only by the Read tool's own call (clipped outputs); never listed
}

// NewTree opens the mounts.
func NewTree(mounts ...Mount) (*Tree, error) { return &Tree{mounts: mounts}, nil }

// Close releases the folders. Open files stay usable.
func (t *Tree) Close() error { return nil }

// Open opens a regular file or folder. flag is that of os.OpenFile; what it
// asks decides between fs.read and fs.write. A FIFO, device or socket is an error.
func (t *Tree) Open(ctx context.Context, r policy.Rights, name string, flag int, perm fs.FileMode) (*File, error) {
	return nil, fs.ErrNotExist
}

// File is an open file or folder of a Tree.
type File struct{}
