package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/config/granted"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/skillhub/keep"
)

// GrantPackage gives an installed package one more right, everywhere on this
// machine, within what it asks for.
func (a *App) GrantPackage(ctx context.Context, name string, g policy.Grant) error {
	in, err := a.PackageNamed(name)
	if err != nil {
		return err
	}
	if in.Disabled == Unasked {
		return fault.New("E1203", "`elfhost plugin enable "+name+"` shows what it asks for", "%s is not in use: %s", name, in.Disabled)
	}
	c := &Candidate{Manifest: in.Manifest}
	texts, err := c.within([]policy.Grant{g})
	if err != nil {
		return err
	}
	err = a.edit(ctx, name, func(p *keep.Package) error {
		for _, t := range texts {
			if !slices.Contains(p.Grants, t) {
				p.Grants = append(p.Grants, t)
			}
		}
		return nil
	})
	if err == nil {
		a.KeepGrant(fmt.Sprintf("granted to %s: %s", name, strings.Join(texts, "; ")))
	}
	return err
}

// RevokePackage takes rights of an installed package back, wherever they were
// given: all where g is nil. Calls that began with them end. It returns what
// was taken.
func (a *App) RevokePackage(ctx context.Context, name string, g *policy.Grant) ([]string, error) {
	in, err := a.PackageNamed(name)
	if err != nil {
		return nil, err
	}
	gone, err := a.revokeLock(ctx, name, g)
	if err != nil {
		return nil, err
	}
	var want policy.Grant
	if g != nil {
		want = *g
	}
	more, err := a.revokeFiles(in, want)
	gone = append(gone, more...)
	a.installs.recheck()
	for _, t := range gone {
		a.KeepGrant("revoked: " + t)
	}
	return gone, err
}

// revokeFiles takes rights back that a grants.toml gives: all of a zero grant.
func (a *App) revokeFiles(in keep.Installed, want policy.Grant) (gone []string, err error) {
	for _, f := range a.grants.files {
		mine := func(x granted.Grant) bool { return x.Name == in.Name && x.Publisher == in.Publisher }
		if have, err := f.read(); err == nil && !slices.ContainsFunc(have.Grants, mine) {
			continue
		}
		err := granted.Update(f.path, f.layer, func(have *granted.File) error {
			for _, x := range have.Revoke(in.Publisher, in.Name, want) {
				gone = append(gone, in.Name+": "+x.Grant().String())
			}
			return nil
		})
		if err != nil {
			return gone, fault.Wrap("E1501", "`elfhost doctor` checks the folders", err)
		}
	}
	return gone, nil
}

// revokeLock takes rights back that elfhost.lock gives.
func (a *App) revokeLock(ctx context.Context, name string, g *policy.Grant) (gone []string, err error) {
	err = a.change(ctx, func(l *keep.Lock) error {
		p, ok := l.Find(name)
		if !ok {
			return nil
		}
		gone = nil
		p.Grants = slices.DeleteFunc(p.Grants, func(text string) bool {
			have, err := policy.ParseGrant(text)
			hit := g == nil || err == nil && have.Cap == g.Cap && (len(g.Scope) == 0 || slices.Equal(have.Scope, g.Scope))
			if hit {
				gone = append(gone, name+": "+text)
			}
			return hit
		})
		return nil
	})
	return gone, err
}
