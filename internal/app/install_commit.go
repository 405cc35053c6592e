package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/skillhub/keep"
)

// Unasked is why a package is disabled that nobody could be asked about.
const Unasked = "nobody has agreed to what it asks for"

// Commit installs the package with these grants. The policy, and what the
// package asks for, narrow them at every call. What is made of the
// module to run it is made first, so that a package that does not start is not
// installed.
func (c *Candidate) Commit(ctx context.Context, grants []policy.Grant, progress func(abi.Progress)) error {
	texts, err := c.within(grants)
	if err != nil {
		return err
	}
	if err := c.confirm(ctx, progress); err != nil {
		return err
	}
	pin := c.Pin
	pin.Grants = texts
	err = c.commit(ctx, func(l *keep.Lock) {
		c.dropUnasked(l)
		p := l.Put(c.Manifest.Name, pin)
		p.Disabled, p.Requested, p.Update = c.keptOut(), c.requested, nil
		if pin.Signer != "" {
			l.Publishers[pin.Publisher] = pin.Signer
		}
	})
	if err != nil {
		return err
	}
	given := "nothing"
	if len(texts) > 0 {
		given = strings.Join(texts, "; ")
	}
	c.app.KeepGrant(fmt.Sprintf("installed %s %s (%s) from %s, granted: %s", c.Manifest.Name, pin.Version, pin.Digest, pin.Source, given))
	return nil
}

// keptOut is why the package stays out of use: a person disabled the version
// before, and nobody is asked about this one.
func (c *Candidate) keptOut() string {
	if !c.AsBefore || c.Old == nil || c.Old.Disabled == Unasked {
		return ""
	}
	return c.Old.Disabled
}

// Store keeps the package for a person to decide later: disabled, when it is
// new; beside the installed version, which stays as it is, when it is an
// update. Nothing is granted and nothing pinned for its publisher.
func (c *Candidate) Store(ctx context.Context) error {
	err := c.commit(ctx, func(l *keep.Lock) {
		c.dropUnasked(l)
		switch old, ok := l.Find(c.Manifest.Name); {
		case ok && old.Digest != c.Pin.Digest:
			pin := c.Pin
			old.Update = &pin
			return
		case ok && old.Disabled != Unasked: // somebody agreed meanwhile
			return
		}
		p := l.Put(c.Manifest.Name, c.Pin)
		p.Disabled, p.Requested = Unasked, c.requested
	})
	if err == nil {
		c.app.KeepGrant(fmt.Sprintf("stored %s %s (%s) from %s, disabled: %s", c.Manifest.Name, c.Pin.Version, c.Pin.Digest, c.Pin.Source, Unasked))
	}
	return err
}

// dropUnasked takes out a version that nobody agreed to: nobody is to go back
// to it, and nothing is an update of it.
func (c *Candidate) dropUnasked(l *keep.Lock) {
	if old, ok := l.Find(c.Manifest.Name); ok && old.Disabled == Unasked && old.Digest != c.Pin.Digest {
		l.Remove(c.Manifest.Name)
	}
}

// commit is the one step, if nothing changed since the package was looked at.
func (c *Candidate) commit(ctx context.Context, edit func(*keep.Lock)) error {
	err := c.stage.Commit(ctx, keep.Pinned{Manifest: c.Manifest, Tools: c.Tools}, func(l *keep.Lock) error {
		now, ok := l.Find(c.Manifest.Name)
		same := ok && now.Digest == c.Pin.Digest // another process took these very bytes in, too
		if !same && (ok != (c.Old != nil) || ok && now.Digest != c.Old.Digest) {
			return keep.ErrStale
		}
		if have, ok := l.Publishers[c.Pin.Publisher]; ok && c.Pin.Publisher != "" && have != c.Pin.Signer {
			return keep.ErrStale
		}
		edit(l)
		return nil
	})
	switch {
	case errors.Is(err, keep.ErrStale):
		return fault.Wrap("E1323", "run it again", err)
	case errors.Is(err, keep.ErrEdited):
		return fault.Wrap("E1323", "`elfhost plugin verify` shows which; move them away, and install again", err)
	case err != nil:
		return fault.Wrap("E1501", "nothing was changed; `elfhost doctor` checks the folders", err)
	}
	c.app.installs.reload(ctx)
	return nil
}

// within checks grants against the capabilities that are asked for, and writes
// them one scope a text. A scope that is wider than what is asked gives no more:
// the needs bound every call.
func (c *Candidate) within(grants []policy.Grant) ([]string, error) {
	var out []string
	for _, g := range grants {
		for _, one := range eachScope(g) {
			canon, err := policy.ParseGrant(one.String())
			if err != nil {
				return nil, fault.Wrap("E1001", "a grant is CAPABILITY SCOPE, such as 'net.http https://a.example GET'", err)
			}
			if !slices.ContainsFunc(c.Manifest.Needs, func(n abi.Need) bool { return n.Cap == canon.Cap }) {
				return nil, fault.New("E1001", "", "%s asks for no %s, so it cannot be given any", c.Manifest.Name, canon.Cap)
			}
			if text := canon.String(); !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return out, nil
}

// confirm makes the module ready to run, and sees to it that what it says of
// its tools is what was packed and shown.
func (c *Candidate) confirm(ctx context.Context, progress func(abi.Progress)) error {
	if c.pkg.Wasm == nil || c.app.Loader.Compiler == "" {
		return nil
	}
	pkg := c.pkg
	pkg.Description = nil
	p, err := c.app.Loader.Load(ctx, pkg)
	if err != nil {
		return fault.Wrap("E1302", "", err)
	}
	defer p.Close(context.WithoutCancel(ctx))
	if err := c.agree(c.Tools, p.Description().Tools, "describe.json", "the module itself"); err != nil {
		return err
	}
	return fault.Wrap("E1503", "`elfhost doctor` checks the machine", p.Warm(ctx, progress))
}
