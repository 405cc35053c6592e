package keep

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/internal/disk"
	"github.com/elfhost/elfhost/skillhub/pack"
)

const stageLock = ".lock"

// Stage is a package on its way in: fetched and unpacked beside the store, for
// a person to look at. Close it; without Commit nothing of it stays.
type Stage struct {
	Digest   skillhub.Digest // of the archive
	Size     int64
	Contents *pack.Contents

	store *Store
	sum   hash.Hash // of what was written
	dir   string
	lock  *os.File
	blob  *os.File
	opt   pack.Options
}

// Stage makes room for a package. Write its archive to the stage, then Unpack.
func (s *Store) Stage() (*Stage, error) {
	tmp := filepath.Join(s.Dir, "tmp")
	fail := func(err error) (*Stage, error) { return nil, fmt.Errorf("making room for a package: %w", err) }
	if err := errors.Join(s.step("stage: make"), os.MkdirAll(tmp, 0o700)); err != nil {
		return fail(err)
	}
	dir, err := os.MkdirTemp(tmp, "")
	if err != nil {
		return fail(err)
	}
	g := &Stage{store: s, dir: dir, sum: sha256.New()}
	if g.lock, err = os.OpenFile(filepath.Join(dir, stageLock), os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o600); err == nil {
		if _, err = disk.TryLock(g.lock); err == nil {
			g.blob, err = os.OpenFile(g.archive(), os.O_CREATE|os.O_RDWR|os.O_EXCL, 0o600)
		}
	}
	if err != nil {
		g.Close()
		return fail(err)
	}
	return g, nil
}

func (g *Stage) archive() string { return filepath.Join(g.dir, "archive") }
func (g *Stage) files() string   { return filepath.Join(g.dir, "files") }

// Write takes the archive's bytes, skillhub.MaxArchive of them at the most.
func (g *Stage) Write(p []byte) (int, error) {
	if g.Size+int64(len(p)) > skillhub.MaxArchive {
		return 0, fmt.Errorf("the archive is over %d bytes", skillhub.MaxArchive)
	}
	if err := g.store.step("stage: archive"); err != nil {
		return 0, err
	}
	n, err := g.blob.Write(p)
	g.sum.Write(p[:n])
	g.Size += int64(n)
	return n, err
}

// Unpack checks the archive against the digest that was promised ("" is none)
// before anything reads it (HUB-05), and unpacks it.
func (g *Stage) Unpack(ctx context.Context, want skillhub.Digest, o pack.Options) error {
	g.Digest = skillhub.DigestSum(g.sum.Sum(nil))
	if want != "" && g.Digest != want {
		return fmt.Errorf("%w: the archive is %s, and %s was promised", skillhub.ErrMismatch, g.Digest, want)
	}
	if _, err := g.blob.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := os.Mkdir(g.files(), 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(g.files())
	if err != nil {
		return err
	}
	defer root.Close()
	g.opt = o
	g.Contents, err = pack.Unpack(ctx, g.blob, sink{pack.Dir{Root: root}, g.store}, o)
	return err
}

// sink tells tests of each file.
type sink struct {
	pack.Dir
	s *Store
}

func (k sink) Create(name string) (io.WriteCloser, error) {
	if err := k.s.step("stage: file"); err != nil {
		return nil, err
	}
	return k.Dir.Create(name)
}

// Archive reads the archive from its beginning.
func (g *Stage) Archive() (io.Reader, error) {
	_, err := g.blob.Seek(0, io.SeekStart)
	return g.blob, err
}

// Reset forgets the archive's bytes, for others.
func (g *Stage) Reset() error {
	if _, err := g.blob.Seek(0, io.SeekStart); err != nil {
		return err
	}
	g.Size = 0
	g.sum.Reset()
	return g.blob.Truncate(0)
}

// FS are the unpacked files.
func (g *Stage) FS() fs.FS { return os.DirFS(g.files()) }

// Dir is the folder of the unpacked files, until Commit.
func (g *Stage) Dir() string { return g.files() }

// ErrEdited is in the error for files of the store that are not those of their
// package any more.
var ErrEdited = errors.New("files were changed after they were installed")

// Commit puts the package into the store and, in the same step, changes the
// lock file by edit. pinned is what the tools were shown to be. After an error
// the lock file is as before.
func (g *Stage) Commit(ctx context.Context, pinned Pinned, edit func(*Lock) error) error {
	s := g.store
	unlock, err := s.exclusive(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	l, _, err := readLock(s.Lock)
	if err != nil {
		return err
	}
	if err := edit(l); err != nil {
		return err
	}
	if err := g.place(pinned); err != nil {
		return fmt.Errorf("storing the package: %w", err)
	}
	return s.write(l)
}

// place moves the bytes to where their digest says. Bytes that no lock file
// names do no harm, so none of this is the step.
func (g *Stage) place(pinned Pinned) error {
	s := g.store
	for _, dir := range []string{"blobs", "files", "pins"} {
		if err := os.MkdirAll(filepath.Join(s.Dir, dir), 0o700); err != nil {
			return err
		}
	}
	if err := errors.Join(s.step("place: blob"), g.sync()); err != nil {
		return err
	}
	if err := os.Rename(g.archive(), s.Blob(g.Digest)); err != nil {
		return err
	}
	if err := s.step("place: files"); err != nil {
		return err
	}
	switch edited, err := s.edited(g.Digest, g.Contents); {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.Rename(g.files(), s.Files(g.Digest)); err != nil {
			return err
		}
	case err != nil:
		return err
	case len(edited) > 0:
		return fmt.Errorf("%w: %q in %s", ErrEdited, edited, s.Files(g.Digest))
	}
	b, err := json.Marshal(pinned)
	if err != nil {
		return err
	}
	if err := s.replace(s.pinFile(g.Digest), b, "place: pin"); err != nil {
		return err
	}
	syncDir(filepath.Join(s.Dir, "blobs"))
	syncDir(filepath.Join(s.Dir, "files"))
	return nil
}

// syncing is how many files wait for the disk at once: it takes about as long
// for many as for one.
const syncing = 16

// sync puts the archive and the unpacked files onto the disk.
func (g *Stage) sync() error {
	names := []string{g.archive()}
	for _, f := range g.Contents.Files {
		if !f.Left {
			names = append(names, filepath.Join(g.files(), filepath.FromSlash(f.Name)))
		}
	}
	errs := make([]error, len(names))
	slots := make(chan struct{}, syncing)
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			f, err := os.OpenFile(name, os.O_WRONLY, 0)
			if err == nil {
				err = errors.Join(f.Sync(), f.Close())
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Close removes what was not committed.
func (g *Stage) Close() error {
	var errs []error
	if g.blob != nil {
		errs = append(errs, g.blob.Close())
	}
	errs = append(errs, os.RemoveAll(g.dir))
	if g.lock != nil {
		errs = append(errs, g.lock.Close())
	}
	return errors.Join(errs...)
}
