package compile

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// An entry is a folder named by its key. It holds what the runtime wrote, and
// a file with the checksum of it.
const (
	sumFile   = "sha256"
	tmpPrefix = "tmp-"

	lockSuffix = ".lock" // of an empty file beside the entry
)

// lock waits until no other process has the lock of that name.
func lock(ctx context.Context, name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		ok, err := tryLock(f)
		if ok { // without the file, who comes later finds the entry
			return func() { release(f) }, nil
		}
		if err == nil {
			select {
			case <-time.After(20 * time.Millisecond):
				continue
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		return nil, errors.Join(err, f.Close())
	}
}

// errDamaged is an entry that does not hold what was compiled.
var errDamaged = errors.New("the cache entry is damaged")

// checksum covers names, sizes and contents of an entry's files. A child that
// was taken over could write anything: links and surplus files are refused.
func checksum(dir string) ([]byte, error) {
	h := sha256.New()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || rel == "." || rel == sumFile {
			return err
		}
		if d.IsDir() {
			return nil
		}
		if files++; !d.Type().IsRegular() || files > 1 {
			return fmt.Errorf("%w: unexpected file %q", errDamaged, rel)
		}
		sum, size, err := fileSum(path)
		fmt.Fprintf(h, "%q %d\n%s", filepath.ToSlash(rel), size, sum)
		return err
	})
	if err == nil && files == 0 {
		err = fmt.Errorf("%w: it holds no code", errDamaged)
	}
	return h.Sum(nil), err
}

// block is how much of a file is hashed at a time: it fits a processor's cache.
const block = 256 << 10

// fileSum hashes the blocks of a file, several at a time, and gives their
// digests in order: a load from the cache waits for it.
func fileSum(path string) (sums []byte, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	size = st.Size()
	blocks := (size + block - 1) / block
	sums = make([]byte, blocks*sha256.Size)
	errs := make([]error, min(blocks, int64(runtime.GOMAXPROCS(0))))
	var next atomic.Int64
	var work sync.WaitGroup
	for w := range errs {
		work.Go(func() {
			buf := make([]byte, block)
			for i := next.Add(1) - 1; i < blocks && errs[w] == nil; i = next.Add(1) - 1 {
				part := buf[:min(block, size-i*block)]
				_, errs[w] = f.ReadAt(part, i*block) // io.EOF too: it has become shorter
				sum := sha256.Sum256(part)
				copy(sums[i*sha256.Size:], sum[:])
			}
		})
	}
	work.Wait()
	return sums, size, errors.Join(errs...)
}

// verify compares an entry with its checksum. os.ErrNotExist means that there
// is no entry.
func verify(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	want, err := os.ReadFile(filepath.Join(dir, sumFile))
	if err != nil {
		return fmt.Errorf("%w: its checksum cannot be read", errDamaged)
	}
	got, err := checksum(dir)
	if err != nil {
		return fmt.Errorf("%w: %v", errDamaged, err) // never os.ErrNotExist
	}
	if !bytes.Equal(bytes.TrimSpace(want), []byte(hex.EncodeToString(got))) {
		return fmt.Errorf("%w: its checksum differs", errDamaged)
	}
	return nil
}

// publish gives a finished entry its name, which makes it visible at once. An
// entry that another process published meanwhile is as good.
func publish(tmp, dir string) error {
	sum, err := checksum(tmp)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrChild, err)
	}
	if err := os.WriteFile(filepath.Join(tmp, sumFile), []byte(hex.EncodeToString(sum)), 0o600); err != nil {
		return fmt.Errorf("writing a cache entry: %w", err)
	}
	if err := os.Rename(tmp, dir); err != nil && verify(dir) != nil {
		return fmt.Errorf("publishing a cache entry: %w", err)
	}
	return nil
}

// Pruned says what Prune removed and what it left.
type Pruned struct {
	Removed, Kept           int
	RemovedBytes, KeptBytes int64
}

// Prune removes entries that were not used for maxAge, then the longest unused
// ones until at most maxBytes are left, and what broken compilations left
// behind. A negative bound does not count. Running programs keep the code they
// have loaded.
func Prune(cache string, maxAge time.Duration, maxBytes int64) (Pruned, error) {
	var p Pruned
	dirs, err := os.ReadDir(cache)
	if errors.Is(err, os.ErrNotExist) {
		return p, nil
	} else if err != nil {
		return p, fmt.Errorf("pruning the compilation cache: %w", err)
	}
	type entry struct {
		path string
		used time.Time
		size int64
	}
	var entries []entry
	for _, d := range dirs {
		info, err := d.Info()
		if err != nil || !ours(strings.TrimSuffix(d.Name(), lockSuffix)) {
			continue
		}
		if !d.IsDir() {
			if d.Type().IsRegular() && strings.HasSuffix(d.Name(), lockSuffix) && time.Since(info.ModTime()) > time.Hour {
				os.Remove(filepath.Join(cache, d.Name())) // at worst, two processes compile
			}
			continue
		}
		e := entry{filepath.Join(cache, d.Name()), info.ModTime(), 0}
		e.size = size(e.path)
		if strings.HasPrefix(d.Name(), tmpPrefix) {
			if time.Since(e.used) > time.Hour { // no compilation takes that long
				err = os.RemoveAll(e.path)
			}
			if err != nil {
				return p, fmt.Errorf("pruning the compilation cache: %w", err)
			}
			continue
		}
		entries = append(entries, e)
		p.KeptBytes += e.size
		p.Kept++
	}
	slices.SortFunc(entries, func(a, b entry) int { return a.used.Compare(b.used) })
	for _, e := range entries {
		if (maxAge < 0 || time.Since(e.used) <= maxAge) && (maxBytes < 0 || p.KeptBytes <= maxBytes) {
			continue
		}
		if err := os.RemoveAll(e.path); err != nil {
			return p, fmt.Errorf("pruning the compilation cache: %w", err)
		}
		p.Kept, p.Removed = p.Kept-1, p.Removed+1
		p.KeptBytes, p.RemovedBytes = p.KeptBytes-e.size, p.RemovedBytes+e.size
	}
	return p, nil
}

// ours keeps Prune from removing what others put into the folder.
func ours(name string) bool {
	return strings.HasPrefix(name, tmpPrefix) || isKey(name)
}

func isKey(name string) bool {
	_, err := hex.DecodeString(name)
	return err == nil && len(name) == 2*sha256.Size
}

func size(dir string) (n int64) {
	filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it may vanish meanwhile
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
		return nil
	})
	return n
}
