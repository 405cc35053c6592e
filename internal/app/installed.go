package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy/packages"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/skillhub/keep"
)

// watchEvery is how often a session looks whether another process installed,
// removed or revoked something.
const watchEvery = time.Second

// Store is where this machine keeps packages.
func Store(p config.Paths) *keep.Store {
	return &keep.Store{Dir: filepath.Join(p.State, "packages"), Lock: filepath.Join(p.Config, keep.LockName)}
}

// installs are the installed packages of a session. They follow elfhost.lock:
// what is installed, removed, enabled or updated meanwhile, by this process or
// another, shows in the registry.
type installs struct {
	app   *App
	store *keep.Store
	now   atomic.Pointer[installedSet]

	mu   sync.Mutex // of reload
	stop chan struct{}
	done chan struct{}
}

// installedSet is one state of elfhost.lock as this session uses it.
type installedSet struct {
	state *keep.State // nil: the lock file could not be read
	packs []*installedPack
	stamp stamp
}

// stamp tells whether a file is another than it was.
type stamp struct {
	mod  time.Time
	size int64
}

func stampOf(file string) stamp {
	st, err := os.Stat(file)
	if err != nil {
		return stamp{}
	}
	return stamp{st.ModTime(), st.Size()}
}

// installedTools makes the packages of elfhost.lock part of the session. None
// of them is opened: their tools are pinned with the lock file.
func installedTools(ctx context.Context, a *App) ([]host.Tool, error) {
	a.installs = &installs{app: a, store: Store(a.Paths), stop: make(chan struct{}), done: make(chan struct{})}
	a.installs.now.Store(&installedSet{})
	first := <-a.atStart
	a.installs.take(ctx, first.stamp, first.state, first.err)
	go a.installs.watch(context.WithoutCancel(ctx))
	return nil, nil
}

func (s *installs) watch(ctx context.Context) {
	defer close(s.done)
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-t.C:
			if stampOf(s.store.Lock) != s.now.Load().stamp {
				s.reload(ctx)
			}
			s.recheck()
			s.app.lookAtOffers()
		}
	}
}

// recheck ends the calls that began with a right which was taken back.
func (s *installs) recheck() {
	for _, p := range s.now.Load().packs {
		p.recheck()
	}
}

// reload takes over what elfhost.lock says now. Packages that stay as they are
// stay open.
func (s *installs) reload(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := stampOf(s.store.Lock)
	st, err := s.store.Load()
	s.take(ctx, at, st, err)
}

// loaded is what was read of the store while the session was opened.
type loaded struct {
	stamp stamp
	state *keep.State
	err   error
}

// loadInstalled reads what is installed, beside the other steps of the start.
func (a *App) loadInstalled(context.Context) error {
	a.atStart = make(chan loaded, 1)
	go func() {
		s := Store(a.Paths)
		at := stampOf(s.Lock)
		st, err := s.Load()
		a.atStart <- loaded{at, st, err}
	}()
	return nil
}

// take is called with the lock held, or at the start.
func (s *installs) take(ctx context.Context, at stamp, st *keep.State, err error) {
	old, next := s.now.Load(), &installedSet{stamp: at}
	if err != nil {
		// What is loaded stays, without the rights that the file gave.
		s.app.note("%v: nothing that was granted in it counts until it is mended; `elfhost plugin verify` says more", err)
		next.packs = old.packs
		s.now.Store(next)
		return
	}
	next.state = st
	for _, in := range st.Installed {
		switch why := s.unusable(in, st.Lock); {
		case in.Disabled != "":
		case why != "":
			s.app.note("the package %s is not loaded: %s", in.Name, why)
		case in.Module == "": // its skill is found through the state
		default:
			next.packs = append(next.packs, s.pack(in))
		}
	}
	s.name(next.packs)
	for i, p := range next.packs {
		for _, o := range old.packs {
			if o.same(p) {
				next.packs[i] = o
			}
		}
	}
	s.now.Store(next) // first, so that rights are there when the tools are
	s.swap(ctx, old.packs, next.packs)
}

// swap makes the registry match.
func (s *installs) swap(ctx context.Context, old, next []*installedPack) {
	var gone []string
	for _, p := range old {
		if slices.Contains(next, p) {
			continue
		}
		gone = append(gone, p.names...)
		go p.close(context.WithoutCancel(ctx))
	}
	var fresh []host.Tool
	for _, p := range next {
		if !slices.Contains(old, p) {
			fresh = append(fresh, p.hostTools()...)
		}
	}
	if len(gone)+len(fresh) == 0 {
		return
	}
	if err := s.app.all.Replace(gone, fresh...); err == nil {
		return
	}
	for _, n := range gone {
		s.app.all.Remove(n)
	}
	for _, t := range fresh { // one by one: the others are not to suffer
		if err := s.app.all.Add(t); err != nil {
			s.app.note("%v", err)
		}
	}
}

// unusable says why a package must not be loaded; "" is nothing.
func (s *installs) unusable(in keep.Installed, l *keep.Lock) string {
	if in.Broken != "" {
		return in.Broken
	}
	if err := s.app.Policy.Package(pinFacts(in.Name, in.Pin, in.Manifest.Needs, l)).Err(); err != nil {
		return err.Error()
	}
	return ""
}

// pinFacts are what a policy judges of a version.
func pinFacts(name string, p keep.Pin, needs []abi.Need, l *keep.Lock) packages.Facts {
	return packages.Facts{
		Name: name, Version: p.Version, Publisher: p.Publisher, Key: p.Signer, Pinned: p.Signer != "" && l.Publishers[p.Publisher] == p.Signer,
		Hub: p.Hub, Digest: string(p.Digest), Needs: needs,
	}
}

// InstalledFacts are what a policy judges of an installed package.
func (a *App) InstalledFacts(name string) (packages.Facts, bool) {
	st, err := a.installs.store.Load()
	if err != nil {
		return packages.Facts{}, false
	}
	i := slices.IndexFunc(st.Installed, func(in keep.Installed) bool { return in.Name == name })
	if i < 0 {
		return packages.Facts{}, false
	}
	in := st.Installed[i]
	return pinFacts(in.Name, in.Pin, in.Manifest.Needs, st.Lock), true
}

func (s *installs) pack(in keep.Installed) *installedPack {
	p := &installedPack{app: s.app, in: in}
	p.pack = newPack(in.Manifest, in.Module.Hex(), in.Tools, false)
	p.pack.installed = p
	return p
}

// name gives each tool the name under which it is registered: its own, or
// PACKAGE__TOOL where it would clash with one of ours or of another package.
// Both of two packages that clash are named so: neither can take a name that
// the other was known by. A tool whose own name looks like that is named so
// always: packages have no underscore in their names, so what stands before the
// first two of a registered name is whose it is.
func (s *installs) name(packs []*installedPack) {
	count := map[string]int{}
	for _, p := range packs {
		for _, t := range p.tools {
			count[strings.ToLower(t.Name)]++
		}
	}
	taken := map[string]bool{}
	for _, t := range s.app.all.All() {
		if _, ours := t.(*installedTool); !ours {
			taken[strings.ToLower(t.Spec().Name)] = true
		}
	}
	for _, p := range packs {
		for _, t := range p.tools {
			n, fold := t.Name, strings.ToLower(t.Name)
			if count[fold] > 1 || taken[fold] || host.Reserved(t.Name) || strings.Contains(t.Name, "__") {
				n = p.manifest.Name + "__" + t.Name
			}
			p.names = append(p.names, n)
		}
	}
}

func (s *installs) close(ctx context.Context) error {
	close(s.stop)
	<-s.done
	var errs []error
	for _, p := range s.now.Load().packs {
		errs = append(errs, p.close(ctx))
	}
	return errors.Join(errs...)
}

// Installed lists the packages of elfhost.lock, those that are disabled or
// cannot be used, too.
func (a *App) Installed() ([]keep.Installed, error) {
	st, err := a.installs.store.Load()
	if err != nil {
		return nil, err
	}
	for i := range st.Installed {
		in := &st.Installed[i]
		in.Broken = a.installs.unusable(*in, st.Lock)
	}
	return st.Installed, nil
}

var errRemoved = errors.New("the package was removed or disabled")

func errRevoked(what string) error { return fmt.Errorf("%s was taken back while it ran", what) }
