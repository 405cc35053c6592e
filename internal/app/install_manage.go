package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/keep"
)

// change edits elfhost.lock and takes over what it says then.
func (a *App) change(ctx context.Context, edit func(*keep.Lock) error) error {
	err := a.installs.store.Change(ctx, edit)
	if err == nil {
		a.installs.reload(ctx)
	}
	if errors.Is(err, keep.ErrLock) {
		return fault.Wrap("E1323", "", err)
	}
	return fault.Wrap("E1501", "`elfhost doctor` checks the folders", err)
}

// edit changes one installed package.
func (a *App) edit(ctx context.Context, name string, change func(*keep.Package) error) error {
	return a.change(ctx, func(l *keep.Lock) error {
		p, ok := l.Find(name)
		if !ok {
			return noPackage(name)
		}
		return change(p)
	})
}

func noPackage(name string) error {
	return fault.New("E1304", "`elfhost plugin list` shows them", "no package %q is installed", name)
}

// PackageNamed finds an installed package, or a stored one that is disabled.
func (a *App) PackageNamed(name string) (keep.Installed, error) {
	all, err := a.Installed()
	if err != nil {
		return keep.Installed{}, fault.Wrap("E1323", "", err)
	}
	i := slices.IndexFunc(all, func(in keep.Installed) bool { return in.Name == name })
	if i < 0 {
		return keep.Installed{}, noPackage(name)
	}
	return all[i], nil
}

// Disable takes a package out of use, and keeps it and its grants.
func (a *App) Disable(ctx context.Context, name, why string) error {
	if why == "" {
		why = "a person disabled it"
	}
	return a.edit(ctx, name, func(p *keep.Package) error {
		if p.Disabled == "" {
			p.Disabled = why
		}
		return nil
	})
}

// Enable takes a package into use again. One that nobody agreed to yet comes
// back as a Candidate, to be agreed to.
func (a *App) Enable(ctx context.Context, name string) (*Candidate, error) {
	in, err := a.PackageNamed(name)
	switch {
	case err != nil:
		return nil, err
	case in.Disabled == Unasked:
		return a.wanted(ctx, in.Package)
	}
	return nil, a.edit(ctx, name, func(p *keep.Package) error {
		if p.Disabled != Unasked {
			p.Disabled = ""
		}
		return nil
	})
}

// stored makes a candidate of a version whose bytes are here.
func (a *App) stored(ctx context.Context, p keep.Package, pin keep.Pin) (*Candidate, error) {
	ref := skillhub.Ref{Kind: skillhub.Local, Location: a.installs.store.Blob(pin.Digest)}
	c, err := a.Prepare(ctx, ref, InstallOptions{WithoutScripts: pin.WithoutScripts, Downgrade: true, Digest: pin.Digest, Requested: p.Requested})
	if err != nil {
		return nil, err
	}
	c.Pin.Source, c.Pin.Hub, c.requested = pin.Source, pin.Hub, p.Requested
	return c, nil
}

// Update looks for a newer version. It returns nil where there is none.
func (a *App) Update(ctx context.Context, name string, o InstallOptions) (*Candidate, error) {
	in, err := a.PackageNamed(name)
	if err != nil {
		return nil, err
	}
	if in.Hold != "" {
		return nil, fault.New("E1322", "`elfhost plugin pin "+name+" --off` lets it be updated", "%s is pinned to %s: %s", name, in.Version, in.Hold)
	}
	ref, err := skillhub.ParseRef(orElse(in.Requested, in.Source))
	if err != nil {
		return nil, fault.Wrap("E1323", "", err)
	}
	ref.Version = "" // the newest
	if ref.Kind == skillhub.OCI {
		ref.Digest = ""
	}
	o.WithoutScripts = o.WithoutScripts || in.WithoutScripts
	o.Requested = in.Requested
	c, err := a.Prepare(ctx, ref, o)
	switch {
	case err != nil:
		if in.Update != nil && (errors.Is(err, skillhub.ErrOffline) || errors.Is(err, abi.ErrUnavailable)) {
			return a.stored(ctx, in.Package, *in.Update) // it was fetched before
		}
		return nil, err
	case c.Manifest.Name != name:
		return nil, errors.Join(fault.New("E1321", "", "%s is not %s any more, but %s", ref, name, c.Manifest.Name), c.Close())
	case c.Pin.Digest == in.Digest:
		return nil, c.Close()
	}
	return c, nil
}

// Carried are the grants of the installed version that the new one may keep
// without a question: it asks for no more than that one did.
func (c *Candidate) Carried() []policy.Grant {
	if c.Old == nil || c.Change.Grew() {
		return nil
	}
	var out []policy.Grant
	for _, g := range parseGrants(c.Old.Grants, "") {
		if slices.ContainsFunc(c.Manifest.Needs, func(n abi.Need) bool { return n.Cap == g.Cap }) {
			out = append(out, g)
		}
	}
	return out
}

// Rollback goes back to the version that was installed before, with what was
// granted to it.
func (a *App) Rollback(ctx context.Context, name string) (from, to string, err error) {
	err = a.edit(ctx, name, func(p *keep.Package) error {
		if len(p.Previous) == 0 {
			return fault.New("E1322", "", "%s has no earlier version to go back to", name)
		}
		last := p.Previous[0]
		if !a.installs.store.Has(last.Digest) {
			return fault.New("E1323", "`elfhost install` fetches it again", "version %s of %s is not here any more", last.Version, name)
		}
		from, to = p.Version, last.Version
		p.Previous = p.Previous[1:]
		p.Pin, p.Disabled = last, ""
		return nil
	})
	if err == nil {
		a.KeepGrant(fmt.Sprintf("went back from %s %s to %s", name, from, to))
	}
	return from, to, err
}

// RemovePackage takes a package and all that was granted to it away. Rights that
// stand elsewhere than in elfhost.lock go first, so that none waits for whoever
// installs the same bytes again; then the package goes with the rest, in one
// writing of that file. Where it breaks off the package is still there, perhaps
// with fewer rights, and removing it again ends the work.
func (a *App) RemovePackage(ctx context.Context, name string) error {
	in, err := a.PackageNamed(name)
	if err != nil {
		return err
	}
	gone, err := a.revokeFiles(in, policy.Grant{})
	if err == nil {
		err = a.change(ctx, func(l *keep.Lock) error {
			if !l.Remove(name) {
				return noPackage(name)
			}
			return nil
		})
	}
	if err == nil {
		for _, g := range in.Grants {
			gone = append(gone, name+": "+g)
		}
	}
	a.installs.recheck()
	for _, t := range gone {
		a.KeepGrant("revoked: " + t)
	}
	switch {
	case err == nil:
		a.KeepGrant("removed the package " + name)
	case len(gone) > 0:
		return fmt.Errorf("%s is still installed, without the rights that were taken back already; remove it again: %w", name, err)
	}
	return err
}

// HoldPackage keeps a package at its version, for a reason; "" lets it go.
func (a *App) HoldPackage(ctx context.Context, name, reason string) error {
	return a.edit(ctx, name, func(p *keep.Package) error {
		p.Hold = reason
		return nil
	})
}
