package reach

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// Walk visits a folder and everything below it. Links are listed but never
// followed; FIFOs, sockets and devices are left out.
type Walk struct {
	// Folder is called once a folder, parents before children, with its
	// entries. It may drop and reorder f.Entries: only what it leaves is visited
	// and entered. It may set f.State, which the folders below find in
	// f.Parent.State. fs.SkipDir leaves the folder, fs.SkipAll ends the walk.
	Folder func(f *Folder) error
	// File is called for every entry left that is no folder. With several
	// workers the calls run at once, also within one folder. fs.SkipAll ends the walk.
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

// Folder is an open folder during a walk. Its fields stay valid, its methods
// only inside the callbacks.
type Folder struct {
	Name    string // virtual path
	Depth   int    // 0 is where the walk began
	Parent  *Folder
	Entries []Entry
	State   any

	w    *walker
	rel  string
	dir  folderHandle
	uses atomic.Int32 // callbacks due; the folder is closed after the last
}

// Walk runs w below root. fs.read is checked on root with the right to ask; what
// the grants do not cover below it is skipped without a question. A root that
// is a file is visited as the only entry of its folder.
func (t *Tree) Walk(ctx context.Context, r policy.Rights, root string, w Walk) error {
	p, err := t.at(ctx, r, root, true, abi.FSRead)
	if err == nil && p.m == nil {
		err = fmt.Errorf("a walk begins in one mount, such as %s: %w", workspace, abi.ErrInvalid)
	}
	if err != nil {
		return pathError("walk", root, err)
	}
	run := &walker{t: t, m: p.m, ctx: ctx, rights: r, Walk: w, hidden: p.m.Hidden}
	run.wake.L = &run.mu
	top := &Folder{Name: p.real, rel: p.rel, w: run}
	if err := run.begin(top); err != nil {
		return pathError("walk", root, err)
	}
	if run.Workers == 0 {
		run.Workers = runtime.GOMAXPROCS(0)
	}
	if run.Workers == 1 {
		err = run.serial(top)
	} else {
		err = run.parallel(top)
	}
	if err == fs.SkipAll || err == fs.SkipDir {
		err = nil
	}
	return err
}

// walker is one running Walk.
type walker struct {
	Walk
	t      *Tree
	m      *mount
	ctx    context.Context
	rights policy.Rights
	hidden bool

	mu    sync.Mutex
	wake  sync.Cond
	tasks []task // a stack: depth first keeps few folders open
	busy  int
	err   error
}

// task is a folder to enter, or some files of an open one.
type task struct {
	folder *Folder
	files  []Entry // nil: enter
}

// batch is how many files one task holds: enough to make the lock cheap, few
// enough to share out one large folder.
const batch = 32

func (w *walker) skip(name string, err error) {
	if w.Skipped != nil {
		w.Skipped(name, pathError("open", name, err))
	}
}

func (w *walker) allowed(name string) error {
	if w.hidden {
		return nil
	}
	// A name that is not UTF-8 cannot be written in a grant: one that covers its
	// folder covers it, under the name by which it is shown.
	return w.rights.Grants.Check(policy.Use{Cap: abi.FSRead, Target: strings.ToValidUTF8(name, "\uFFFD")})
}

// list opens a folder and reads its entries.
func (w *walker) list(f *Folder) error {
	dir, id, err := w.m.openFolder(f.rel)
	if err != nil {
		return err
	}
	if w.m.kernelFS(id) {
		dir.close()
		return ErrNotRegular
	}
	list, err := dir.entries()
	if err != nil {
		dir.close()
		return err
	}
	f.dir = dir
	f.Entries = slices.DeleteFunc(list, func(e Entry) bool {
		return e.Type != 0 && !e.Type.IsDir() && e.Type != fs.ModeSymlink
	})
	f.uses.Store(1)
	return nil
}

// begin lists the first folder, or the one that holds the file given instead.
func (w *walker) begin(top *Folder) error {
	err := w.list(top)
	info, statErr := w.m.root.Lstat(filepath.FromSlash(top.rel))
	if err == nil || statErr != nil || info.IsDir() || top.rel == "." {
		return err
	}
	top.Name, top.rel = path.Dir(top.Name), path.Dir(top.rel)
	if err := w.list(top); err != nil {
		return err
	}
	top.Entries = []Entry{{info.Name(), info.Mode().Type()}}
	return nil
}

func (f *Folder) release() {
	if f.uses.Add(-1) == 0 {
		f.dir.close()
	}
}

// enter opens and lists a folder unless it is open, and lets the visitor choose.
// ok is false when there is nothing to go on with.
func (w *walker) enter(f *Folder) (ok bool, err error) {
	if f.uses.Load() == 0 {
		if err := w.allowed(f.Name); err != nil {
			w.skip(f.Name, err)
			return false, nil
		}
		if err := w.list(f); err != nil {
			w.skip(f.Name, err)
			return false, nil
		}
	}
	if w.Folder == nil {
		return true, nil
	}
	if err := w.Folder(f); err != nil {
		f.release()
		if err == fs.SkipDir {
			err = nil
		}
		return false, err
	}
	return true, nil
}

func (w *walker) child(f *Folder, e Entry) *Folder {
	c := &Folder{Name: f.Name + "/" + e.Name, Depth: f.Depth + 1, Parent: f, w: w, rel: e.Name}
	if f.rel != "." {
		c.rel = f.rel + "/" + e.Name
	}
	return c
}

func (w *walker) file(f *Folder, e Entry) error {
	if w.File == nil {
		return nil
	}
	if err := w.allowed(f.Name + "/" + e.Name); err != nil {
		w.skip(f.Name+"/"+e.Name, err)
		return nil
	}
	return w.File(f, e)
}

func (w *walker) serial(f *Folder) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	ok, err := w.enter(f)
	if !ok {
		return err
	}
	slices.SortFunc(f.Entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	var folders []Entry
	for _, e := range f.Entries {
		if e.Type.IsDir() {
			folders = append(folders, e)
		} else if err := w.file(f, e); err != nil {
			f.release()
			return err
		}
	}
	f.release()
	for _, e := range folders {
		if err := w.serial(w.child(f, e)); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) parallel(top *Folder) error {
	w.tasks = []task{{folder: top}}
	var group sync.WaitGroup
	for range w.Workers {
		group.Go(w.work)
	}
	group.Wait()
	for _, t := range w.tasks { // left over by an early end
		if t.files != nil || t.folder == top {
			t.folder.release()
		}
	}
	return w.err
}

func (w *walker) fail(err error) {
	w.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	w.mu.Unlock()
	w.wake.Broadcast()
}

func (w *walker) work() {
	for {
		w.mu.Lock()
		for len(w.tasks) == 0 && w.busy > 0 && w.err == nil {
			w.wake.Wait()
		}
		if w.err == nil { // asked here, of no watcher that a busy machine keeps waiting
			w.err = w.ctx.Err()
		}
		if len(w.tasks) == 0 || w.err != nil {
			w.mu.Unlock()
			w.wake.Broadcast()
			return
		}
		next := w.tasks[len(w.tasks)-1]
		w.tasks = w.tasks[:len(w.tasks)-1]
		w.busy++
		w.mu.Unlock()

		more, err := w.do(next)
		if err != nil {
			w.fail(err)
		}
		w.mu.Lock()
		w.tasks = append(w.tasks, more...)
		w.busy--
		w.mu.Unlock()
		if len(more) > 1 || err != nil {
			w.wake.Broadcast()
		} else {
			w.wake.Signal()
		}
	}
}

// do runs one task and returns what it leads to: folders first, so that the
// files of an open folder are taken from the stack before them.
func (w *walker) do(t task) ([]task, error) {
	f := t.folder
	if t.files != nil {
		defer f.release()
		for _, e := range t.files {
			if err := w.file(f, e); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	ok, err := w.enter(f)
	if !ok {
		return nil, err
	}
	var more []task
	files := make([]Entry, 0, len(f.Entries))
	for _, e := range f.Entries {
		if e.Type.IsDir() {
			more = append(more, task{folder: w.child(f, e)})
		} else {
			files = append(files, e)
		}
	}
	for chunk := range slices.Chunk(files, batch) {
		f.uses.Add(1)
		more = append(more, task{f, chunk})
	}
	f.release()
	return more, nil
}

// ReadFile reads a file of this folder into buf[:0], growing it where needed,
// at most limit bytes (0: 10 MiB); more says that there was more. One open and
// no path look-up: it is the fast way to read everything.
func (f *Folder) ReadFile(name string, buf []byte, limit int64) (data []byte, more bool, err error) {
	data, more, err = f.dir.read(name, buf, limit, f.admit(name))
	if err != nil {
		err = pathError("read", f.Name+"/"+name, err)
	}
	return data, more, err
}

func (f *Folder) admit(name string) func(identity) error {
	return func(id identity) error {
		p := place{m: f.w.m, rel: name}
		return f.w.t.admit(policy.Rights{}, p, id, policy.Use{Cap: abi.FSRead, Target: f.Name + "/" + name})
	}
}

// Open opens a file of this folder for reading, for those too large for ReadFile.
func (f *Folder) Open(name string) (*File, error) {
	full := f.Name + "/" + name
	file, id, err := f.dir.open(name)
	if err != nil {
		return nil, pathError("open", full, err)
	}
	if err = f.admit(name)(id); err == nil && id.folder {
		err = syscall.EISDIR
	}
	if err != nil {
		file.Close()
		return nil, pathError("open", full, err)
	}
	return &File{t: f.w.t, m: f.w.m, f: file, name: full, rel: f.w.child(f, Entry{Name: name}).rel, Links: id.links}, nil
}

// Info is Lstat of an entry.
func (f *Folder) Info(name string) (fs.FileInfo, error) {
	info, err := f.dir.info(name)
	if err != nil {
		return nil, pathError("lstat", f.Name+"/"+name, err)
	}
	return info, nil
}
