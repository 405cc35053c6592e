package reach

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/elfhost/elfhost/abi"
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
	// unsaved text. Nil: the disk. Set it, like the field below, before first use.
	Editor Editor
	// DenyMultilink refuses files with more than one hard link: the other name
	// may lie outside the mount.
	DenyMultilink bool

	mounts *mountTable
	reveal bool // a view of another tree, which owns the mounts
}

// Limits of names. The first two are Linux's; more components than the last
// occur in attacks only.
const (
	maxPath      = 4096
	maxComponent = 255
	maxDepth     = 512
	maxLinks     = 40
)

// NewTree opens the mounts. Without mounts the root is empty.
func NewTree(mounts ...Mount) (*Tree, error) {
	t := &Tree{mounts: new(mountTable)}
	for _, m := range mounts {
		if err := t.mounts.add(m); err != nil {
			t.Close()
			return nil, fmt.Errorf("mounting %q: %w", m.Name, err)
		}
	}
	return t, nil
}

// Reveal returns a view of the same tree in which hidden mounts can be read,
// without a grant: holding the view is the right. The Read tool alone has it.
// Closing a view does nothing.
func (t *Tree) Reveal() *Tree {
	return &Tree{Editor: t.Editor, DenyMultilink: t.DenyMultilink, mounts: t.mounts, reveal: true}
}

// Close releases the folders. Open files stay usable.
func (t *Tree) Close() error {
	if t.reveal {
		return nil
	}
	return t.mounts.close()
}

// Mounts lists what is mounted, or will be when it is there; hidden mounts where
// this view shows them.
func (t *Tree) Mounts() []Mount {
	return slices.DeleteFunc(t.mounts.declared(), func(m Mount) bool { return !t.sees(m) })
}

func (t *Tree) sees(m Mount) bool { return !m.Hidden || t.reveal }

func (t *Tree) find(name string) *mount { return t.mounts.find(name) }

// locate splits a virtual path into its mount and the path below it ("." for
// the mount itself). The virtual root has no mount. It is lexical.
func (t *Tree) locate(name string) (m *mount, rel, clean string, err error) {
	if err := checkName(name); err != nil {
		return nil, "", name, err
	}
	if !strings.HasPrefix(name, "/") {
		return nil, "", name, fmt.Errorf("not an absolute virtual path: %w", abi.ErrInvalid)
	}
	clean = path.Clean(name)
	if clean == "/" {
		return nil, "", clean, nil
	}
	first, rest, _ := strings.Cut(clean[1:], "/")
	m = t.find("/" + first)
	if m == nil || !t.sees(m.Mount) {
		return nil, "", clean, fs.ErrNotExist
	}
	if rest == "" {
		rest = "."
	}
	return m, rest, clean, nil
}

// checkName refuses what no file system should be asked about.
func checkName(name string) error {
	switch {
	case strings.IndexByte(name, 0) >= 0:
		return fmt.Errorf("a path may not hold a NUL byte: %w", abi.ErrInvalid)
	case len(name) > maxPath || strings.Count(name, "/") > maxDepth:
		return fmt.Errorf("the path is over %d bytes or %d components: %w", maxPath, maxDepth, syscall.ENAMETOOLONG)
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > maxComponent {
			return fmt.Errorf("a component is over %d bytes: %w", maxComponent, syscall.ENAMETOOLONG)
		}
	}
	return nil
}

// virtual is the inverse of locate.
func (m *mount) virtual(rel string) string {
	if rel == "." {
		return m.Name
	}
	return m.Name + "/" + rel
}

// refuse is a denial of the tree's own, told to the audit log like any other.
func refuse(r policy.Rights, u policy.Use, why string) error {
	d := &policy.Denial{Use: u, Layer: "files", Final: true, Why: why}
	if r.Note != nil {
		r.Note(u, d)
	}
	return d
}

const whyEscape = "it leads out of its mount"

// errEscape is a path or link that leads out of its mount.
var errEscape = errors.New(whyEscape)

// pathError puts the virtual path in place of whatever the system named.
func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	for {
		if pe, ok := err.(*fs.PathError); ok {
			err = pe.Err
		} else if le, ok := err.(*os.LinkError); ok {
			err = le.Err
		} else if se, ok := err.(*os.SyscallError); ok {
			err = se.Err
		} else {
			break
		}
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}
