package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/elfhost/elfhost/host/sandbox"
)

// glance is how often a session looks for a new build of its plugins.
const glance = 50 * time.Millisecond

// follow takes up new builds of the plugins that were named with --plugin,
// when `elfhost plugin dev` makes some, until the session is closed. It looks
// at a file in the state folder, not at the plugin's: see builds.
func (a *App) follow(context.Context) error {
	if !a.opt.Follow {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	for _, name := range a.opt.Plugins {
		done.Go(func() { a.followOne(ctx, name) })
	}
	a.unfollow = func() { stop(); done.Wait() }
	return nil
}

func (a *App) followOne(ctx context.Context, name string) {
	file, _, err := buildsFile(a.Paths, name)
	if err != nil {
		return
	}
	tick := time.NewTicker(glance)
	defer tick.Stop()
	var seen time.Time // the first look reads: a build may have come since this session read the folder
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		st, err := os.Stat(file)
		if err != nil || st.ModTime().Equal(seen) {
			continue
		}
		seen = st.ModTime()
		if text, err := a.reload(ctx, file, name); ctx.Err() != nil {
			return
		} else if err != nil {
			a.tell(fmt.Sprintf("the new build of %s is not taken up, the last one goes on: %v", name, err))
		} else if text != "" {
			a.tell(text)
		}
	}
}

// tell lets the person know, at once where somebody listens, else at the next
// occasion.
func (a *App) tell(text string) {
	if a.opt.Told != nil {
		a.opt.Told(text)
		return
	}
	a.note("%s", text)
}

// reload puts the last build of a folder in the place of the one that runs.
// The new one is ready before the old one goes, and calls of the old one end
// in peace.
func (a *App) reload(ctx context.Context, file, name string) (string, error) {
	b, err := readBuilds(file)
	if err != nil {
		return "", err
	}
	pkg, _, err := ReadPackage(name)
	if err != nil {
		return "", err
	}
	if pkg.Digest != b.latest() {
		return "", nil // it was built again meanwhile, or something else wrote there
	}
	packs := a.packs()
	i := slices.IndexFunc(packs, func(p pack) bool { return p.folder == name })
	if i < 0 {
		return "", fmt.Errorf("%q is not loaded here", name)
	}
	old := packs[i]
	next := newPack(pkg.Manifest, pkg.Digest, nil, false)
	if old.digest == pkg.Digest && old.needs == next.needs {
		return "", nil
	}
	pkg.Draft = true // its author waits
	p, err := a.Loader.Load(ctx, pkg)
	if err != nil {
		return "", err
	}
	if err := p.Warm(ctx, nil); err != nil {
		return "", errors.Join(err, p.Close(context.WithoutCancel(ctx)))
	}
	next.tools, next.folder = p.Description().Tools, name
	var names []string
	for _, t := range old.tools {
		names = append(names, t.Name)
	}
	before := a.swap(i, next, p)
	if err := a.all.Replace(names, p.Tools()...); err != nil {
		a.swap(i, old, before)
		return "", errors.Join(err, p.Close(context.WithoutCancel(ctx)))
	}
	text := fmt.Sprintf("took up the new build of %s (sha256 %.12s)", pkg.Manifest.Name, pkg.Digest)
	if old.needs != next.needs {
		text += "; its needs changed: what was granted is asked again"
	}
	return text, before.Close(ctx)
}

// swap changes a plugin of the session, and returns the one that was there.
// Its grants are those of the new one from then on.
func (a *App) swap(i int, next pack, p *sandbox.Plugin) *sandbox.Plugin {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.Plugins[i]
	a.Plugins = slices.Clone(a.Plugins)
	a.packages = slices.Clone(a.packages)
	a.Plugins[i], a.packages[i] = p, next
	return before
}

// packs are the plugins of this session: those that were there at its start,
// some of which change when builds are followed, then the installed ones of
// this moment.
func (a *App) packs() []pack {
	a.mu.Lock()
	out := slices.Clip(a.packages)
	a.mu.Unlock()
	if a.installs == nil {
		return out
	}
	for _, p := range a.installs.now.Load().packs {
		out = append(out, p.pack)
	}
	return out
}
