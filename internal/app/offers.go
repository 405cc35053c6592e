package app

import (
	"encoding/binary"
	"hash"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/elfhost/elfhost/internal/config"
)

// offers notices that Prompts, Resources or Powerless may give others than
// before: it looks at the folders of skills and commands, not into their files,
// and at the files with grants. The zero value is ready.
type offers struct {
	mu      sync.Mutex
	changed chan struct{} // nil: nobody waits
	seen    uint64
}

// OffersChanged is closed when Prompts, Resources, Powerless or the commands may
// give others than at the time of the call.
func (a *App) OffersChanged() <-chan struct{} {
	o := &a.offers
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changed == nil {
		o.changed, o.seen = make(chan struct{}), a.glimpse()
	}
	return o.changed
}

// lookAtOffers is called now and then.
func (a *App) lookAtOffers() {
	o := &a.offers
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changed != nil && a.glimpse() != o.seen {
		close(o.changed)
		o.changed = nil
	}
}

// Bounds of a glimpse. What lies deeper, or is more, shows when it is listed.
const (
	glimpseDepth = 3
	glimpseMost  = 2000 // files and folders
)

// glimpse is another number where the folders of skills and commands, the
// installed packages, what is granted or the servers' prompts are others.
func (a *App) glimpse() uint64 {
	g := glimpsed{hash: fnv.New64a(), left: glimpseMost}
	dirs := []string{filepath.Join(a.Paths.Config, "commands"), filepath.Join(a.Dir, config.ProjectDir, "commands")}
	for _, m := range a.ownSkills() {
		if m.Name != packageMount {
			dirs = append(dirs, m.Dir)
		}
	}
	for _, dir := range projectSkills {
		dirs = append(dirs, filepath.Join(a.Dir, filepath.FromSlash(dir)))
	}
	for _, dir := range dirs {
		g.folder(dir, glimpseDepth)
	}
	if a.installs != nil {
		g.stamp("packages", a.installs.now.Load().stamp)
	}
	for _, f := range a.grants.files {
		g.stamp(f.path, stampOf(f.path))
	}
	for _, c := range a.serverPrompts() {
		_, _ = io.WriteString(g.hash, c.Name+"\x00"+c.Description+"\x00")
	}
	return g.hash.Sum64()
}

type glimpsed struct {
	hash hash.Hash64
	left int
}

func (g *glimpsed) stamp(name string, s stamp) {
	_, _ = io.WriteString(g.hash, name+"\x00")
	_ = binary.Write(g.hash, binary.LittleEndian, [2]int64{s.mod.UnixNano(), s.size})
}

func (g *glimpsed) folder(dir string, depth int) {
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return // a pipe would have us wait
	}
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	entries, _ := f.ReadDir(g.left)
	f.Close()
	g.left -= len(entries)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		st, err := os.Stat(path)
		if err != nil {
			continue
		}
		g.stamp(e.Name(), stamp{st.ModTime(), st.Size()})
		if st.IsDir() && depth > 1 && g.left > 0 {
			g.folder(path, depth-1)
		}
	}
}
