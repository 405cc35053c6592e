package hub

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/elfhost/elfhost/skillhub/internal/disk"
)

// grace is how long files stay that nothing leads to any more: a client that
// began with the old state ends with it.
const grace = 24 * time.Hour

// prune removes old files of metadata, of the documents that changed, and of
// the index. Roots stay for good: clients walk over all of them.
func (a *Author) prune(s *state) error {
	errs := []error{a.sweep(metadataDir, func(name string) bool { return s.outdated(name) })}
	for role := range s.dirtyBins {
		bin := s.bins[role]
		for target, f := range bin.Signed.Targets {
			keep := targetPath(target, digestOf(f))
			dir := keep[:strings.LastIndexByte(keep, '/')]
			if bin.Signed.Version > 1 {
				errs = append(errs, a.sweep(dir, func(name string) bool { return dir+"/"+name != keep }))
			}
		}
	}
	return errors.Join(errs...)
}

// outdated reports metadata of a version before the current one.
func (s *state) outdated(name string) bool {
	number, rest, ok := strings.Cut(name, ".")
	version, err := strconv.ParseInt(number, 10, 64)
	role, isJSON := strings.CutSuffix(rest, ".json")
	if !ok || err != nil || !isJSON || role == Root {
		return false
	}
	if role == Snapshot {
		return version < s.snapshot.Signed.Version
	}
	m := s.snapshot.Signed.Meta[role+".json"]
	return m != nil && version < m.Version
}

// sweep removes files of one folder that are out of use and old enough, and
// what processes left that were killed while writing.
func (a *Author) sweep(dir string, outdated func(name string) bool) error {
	entries, err := os.ReadDir(a.path(dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !outdated(e.Name()) && !disk.IsTemp(e.Name()) {
			continue
		}
		st, err := e.Info()
		if err == nil && st.Mode().IsRegular() && a.now().Sub(st.ModTime()) > grace {
			err = os.Remove(a.path(dir + "/" + e.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
