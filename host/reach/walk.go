package reach

import (
	"context"
	"io/fs"

	"github.com/elfhost/elfhost/host/policy"
)

// Walk visits a folder and everything below it. Links are never followed;
// what is not a regular file, folder or link is left out.
type Walk struct {
	// Folder is called once a folder, parents before children, with its
	// entries. It may drop and reorder f.Entries: only what it leaves is visited
	// and entered. It may set f.State, which the folders below find in
	// f.Parent.State. fs.SkipDir leaves the folder, fs.SkipAll ends the walk.
	Folder func(f *Folder) error
	// File is called for every entry left that is no folder. With several
	// workers the calls run at once, also within one folder.
	File func(f *Folder, e Entry) error
	// Skipped is told what could not be read or is not granted. May be nil.
	Skipped func(name string, err error)
	Workers int // 0: GOMAXPROCS; 1: one after the other, by name
}

// Entry is one name in a folder.
type Entry struct {
	Name string      // the last component
	Type fs.FileMode // type bits only
}

// Folder is an open folder during a walk. It is valid inside the callbacks.
type Folder struct {
	Name    string // virtual path
	Depth   int    // 0 is where the walk began
	Parent  *Folder
	Entries []Entry
	State   any

	dir folderHandle
}

// Walk runs w below root. fs.read is checked on root with the right to ask; what
// the grants do not cover below it is skipped without a question.
func (t *Tree) Walk(ctx context.Context, r policy.Rights, root string, w Walk) error {
	return t.walk(ctx, r, root, w)
}

// ReadFile appends a file of this folder to buf[:0], at most max bytes. One
// open, no path lookup: it is the fast way to read everything. A file that is
// larger is returned up to max with more=true.
func (f *Folder) ReadFile(name string, buf []byte, max int64) (data []byte, more bool, err error) {
	return f.readFile(name, buf, max)
}

// Open opens a file of this folder for reading, for those too large for ReadFile.
func (f *Folder) Open(name string) (*File, error) { return f.open(name) }

// Info is Lstat of an entry.
func (f *Folder) Info(name string) (fs.FileInfo, error) { return f.info(name) }
