package reach

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Mount puts a host folder at a virtual path of one component.
type Mount struct {
	Name     string // "/ws"
	Dir      string // absolute path on the host
	ReadOnly bool
	// Hidden mounts are seen through Reveal alone, and are read-only there.
	Hidden bool
	// Late says that Dir may be missing. Nothing is at Name then, until Dir is made.
	Late bool
}

// mount is an open Mount.
type mount struct {
	Mount
	real string   // Dir with its links resolved
	root *os.Root // confines whatever openat2 does not
	base *os.File // the folder itself, for openat2

	kernel  atomic.Bool // openat2 was refused: some sandboxes know it not
	devices sync.Map    // device number → whether it is a kernel file system
	swap    sync.Mutex  // between WriteOptions.Before and the rename
}

func openMount(m Mount) (*mount, error) {
	real, err := filepath.EvalSymlinks(m.Dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, err
	}
	base, err := root.Open(".")
	if err != nil {
		root.Close()
		return nil, err
	}
	return &mount{Mount: m, real: real, root: root, base: base}, nil
}

func (m *mount) close() error { return errors.Join(m.base.Close(), m.root.Close()) }

// mountTable holds the mounts of a tree and of its views.
type mountTable struct {
	open    atomic.Pointer[[]*mount] // never changed in place
	missing atomic.Int64             // late ones that are not open

	mu     sync.Mutex
	late   []Mount // that are not open
	closed bool
}

func (s *mountTable) add(m Mount) error {
	if name, ok := strings.CutPrefix(m.Name, "/"); !ok || name == "" || !fs.ValidPath(name) || strings.Contains(name, "/") {
		return errors.New("a mount's name is one component, such as /ws")
	}
	named := func(o Mount) bool { return o.Name == m.Name }
	if slices.ContainsFunc(s.declared(), named) {
		return fs.ErrExist
	}
	if !filepath.IsAbs(m.Dir) {
		return fmt.Errorf("%q is not absolute", m.Dir)
	}
	m.Dir = filepath.Clean(m.Dir)
	one, err := openMount(m)
	switch {
	case err == nil:
		s.opened(one)
	case m.Late:
		s.late = append(s.late, m)
		s.missing.Add(1)
	default:
		return err
	}
	return nil
}

func (s *mountTable) opened(m *mount) {
	list := append(slices.Clip(s.list()), m)
	s.open.Store(&list)
}

func (s *mountTable) list() []*mount {
	if l := s.open.Load(); l != nil {
		return *l
	}
	return nil
}

// all are those that are open now, after a look for those that were missing.
func (s *mountTable) all() []*mount {
	s.look(func(Mount) bool { return true })
	return s.list()
}

// declared are all of them, be they there or not.
func (s *mountTable) declared() []Mount {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Mount
	for _, m := range s.list() {
		out = append(out, m.Mount)
	}
	return append(out, s.late...)
}

func (s *mountTable) find(name string) *mount {
	named := func(m *mount) bool { return m.Name == name }
	list := s.list()
	i := slices.IndexFunc(list, named)
	if i < 0 {
		s.look(func(m Mount) bool { return m.Name == name })
		list = s.list()
		if i = slices.IndexFunc(list, named); i < 0 {
			return nil
		}
	}
	return list[i]
}

// look opens those of the missing that are wanted and there.
func (s *mountTable) look(wanted func(Mount) bool) {
	if s.missing.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.late = slices.DeleteFunc(s.late, func(m Mount) bool {
		if !wanted(m) {
			return false
		}
		one, err := openMount(m)
		if err != nil {
			return false
		}
		s.opened(one)
		s.missing.Add(-1)
		return true
	})
}

func (s *mountTable) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var errs []error
	for _, m := range s.list() {
		errs = append(errs, m.close())
	}
	return errors.Join(errs...)
}
