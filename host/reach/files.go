package reach

import (
	"context"
	"io"
	"io/fs"
	"time"

	"github.com/elfhost/elfhost/host/policy"
)

// Tree is the virtual root: "/ws" is the workspace, other mounts lie beside
// it. It is opened once a session and safe for concurrent use; Close it.
//
// Names are absolute virtual paths ("/ws/a/b"), separated by slashes on every
// platform. Errors are *fs.PathError with the virtual path, wrapping
// fs.ErrNotExist, a *policy.Denial, and so on; a host path never appears in them.
//
// Links are resolved inside their mount or refused. The rights are asked about
// the name as given, and about the resolved one where it differs: a link leads
// nowhere that the grant does not.
type Tree struct {
	// Editor serves whole files in place of the disk where an editor holds
	// unsaved text. Nil: the disk. Set it, like the fields below, before first use.
	Editor Editor
	// DenyMultilink refuses files with more than one hard link: the other name
	// may lie outside the mount.
	DenyMultilink bool

	mounts []*mount
	reveal bool
}

// Mount puts a host folder at a virtual path of one component.
type Mount struct {
	Name     string // "/ws"
	Dir      string // absolute path on the host
	ReadOnly bool
	// Hidden mounts are seen through Reveal alone, and are read-only there.
	Hidden bool
}

// Editor is a client that holds files of its own, such as an editor with
// unsaved buffers. Paths are absolute host paths. errors.ErrUnsupported falls
// back to the disk. The rights were checked before either is called.
type Editor interface {
	ReadFile(ctx context.Context, path string) ([]byte, error)
	WriteFile(ctx context.Context, path string, data []byte) error
}

// NewTree opens the mounts. Without mounts the root is empty.
func NewTree(mounts ...Mount) (*Tree, error) { return openTree(mounts) }

// Reveal returns a view of the same tree in which hidden mounts can be read,
// without a grant: holding the view is the right. The Read tool alone has it.
// Closing a view does nothing.
func (t *Tree) Reveal() *Tree { return t.revealed() }

// Close releases the folders. Open files stay usable.
func (t *Tree) Close() error { return t.close() }

// Virtual translates what a model or a person wrote into a virtual path:
// relative to cwd (a virtual path, "" is "/ws"), absolute on the host, already
// virtual, or a file:// URI. A host path outside every mount is an error that
// matches fs.ErrNotExist, unless "/" itself is mounted (as "/host", where
// restrict_to_workspace is off). It touches no disk and grants nothing.
func (t *Tree) Virtual(cwd, p string) (string, error) { return t.virtual(cwd, p) }

// Host translates a virtual path into one of the host, for people, editors and
// programs. It does not resolve links.
func (t *Tree) Host(name string) (string, error) { return t.host(name) }

// Display is the shortest name that Virtual(cwd, …) takes back: relative below
// cwd, a host path elsewhere.
func (t *Tree) Display(cwd, name string) string { return t.display(cwd, name) }

// Open opens a regular file or folder. flag is that of os.OpenFile; what it
// asks decides between fs.read and fs.write: any of O_WRONLY, O_RDWR,
// O_APPEND, O_CREATE, O_TRUNC asks for fs.write (O_RDWR for both). A FIFO, device
// or socket is an error at once.
func (t *Tree) Open(ctx context.Context, r policy.Rights, name string, flag int, perm fs.FileMode) (*File, error) {
	return t.open(ctx, r, name, flag, perm)
}

// ReadFile reads a whole file, from the Editor where there is one. A file of
// more than limit bytes is an error that matches abi.ErrTooLarge, told before
// it is read; limit 0 means 10 MiB.
func (t *Tree) ReadFile(ctx context.Context, r policy.Rights, name string, limit int64) ([]byte, error) {
	return t.readFile(ctx, r, name, limit)
}

// WriteOptions say how WriteFile replaces a file.
type WriteOptions struct {
	Perm    fs.FileMode // of a new file; 0 is 0o644. An existing file keeps its mode and, where allowed, its owner
	Parents bool        // make missing folders
	New     bool        // an existing file is fs.ErrExist
	Sync    bool        // survive a power cut: fsync file and folder
	// Before is called with the file that is about to be replaced (nil: none),
	// after the new text is on disk and just before the rename. Its error stops
	// the write and leaves everything as it was.
	Before func(old fs.FileInfo) error
}

// WriteFile replaces a whole file, or leaves it as it was: a temporary file
// beside the target, then a rename. A link is followed inside its mount and its
// target is replaced, not the link. It needs fs.write.
func (t *Tree) WriteFile(ctx context.Context, r policy.Rights, name string, data io.Reader, o WriteOptions) (fs.FileInfo, error) {
	return t.writeFile(ctx, r, name, data, o)
}

// Stat follows links. It needs fs.read.
func (t *Tree) Stat(ctx context.Context, r policy.Rights, name string) (fs.FileInfo, error) {
	return t.stat(ctx, r, name, true)
}

// Lstat does not follow a link in the last component. It needs fs.read.
func (t *Tree) Lstat(ctx context.Context, r policy.Rights, name string) (fs.FileInfo, error) {
	return t.stat(ctx, r, name, false)
}

// ReadDir lists a folder, sorted by name. It needs fs.read on the folder;
// entries are names and kinds only and are not filtered further.
func (t *Tree) ReadDir(ctx context.Context, r policy.Rights, name string) ([]fs.DirEntry, error) {
	return t.readDir(ctx, r, name)
}

// ReadLink returns a link's target when it is relative; an absolute target is
// a host path, so it is an error. It needs fs.read.
func (t *Tree) ReadLink(ctx context.Context, r policy.Rights, name string) (string, error) {
	return t.readLink(ctx, r, name)
}

// Mkdir makes one folder; an existing one is fs.ErrExist.
func (t *Tree) Mkdir(ctx context.Context, r policy.Rights, name string, perm fs.FileMode) error {
	return t.mkdir(ctx, r, name, perm)
}

// MkdirAll makes a folder and its missing parents.
func (t *Tree) MkdirAll(ctx context.Context, r policy.Rights, name string, perm fs.FileMode) error {
	return t.mkdirAll(ctx, r, name, perm)
}

// Remove removes a file, a link (never its target) or an empty folder.
func (t *Tree) Remove(ctx context.Context, r policy.Rights, name string) error {
	return t.remove(ctx, r, name)
}

// Rename moves within one mount. It needs fs.write on both names; a folder
// that holds, or would come to hold, a protected name needs the grant for that too.
func (t *Tree) Rename(ctx context.Context, r policy.Rights, from, to string) error {
	return t.rename(ctx, r, from, to)
}

// Chtimes sets the times of a file or folder; a zero time is left as it is. It
// needs fs.write.
func (t *Tree) Chtimes(ctx context.Context, r policy.Rights, name string, atime, mtime time.Time) error {
	return t.chtimes(ctx, r, name, atime, mtime)
}
