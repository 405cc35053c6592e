package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/keep"
)

// Sync is what it takes for this machine to match a lock file. Close it.
type Sync struct {
	File  string
	Wants []Wanted // packages to install, in the order of their names
	Same  []string // packages that are as the file has them
	Extra []string // packages that the file does not name

	app *App
}

// Wanted is a package that the file names, and what the file says was granted
// to it: a wish, until a person agrees.
type Wanted struct {
	*Candidate
	Grants []policy.Grant
}

// ProjectLock is the lock file that a project commits.
func ProjectLock(dir string) string {
	return filepath.Join(dir, config.ProjectDir, keep.LockName)
}

// PlanSync reads a lock file, and fetches and verifies what is missing here.
// Bytes that are here are not fetched. Nothing is installed yet.
func (a *App) PlanSync(ctx context.Context, file string) (*Sync, error) {
	l, err := keep.ReadLock(file)
	if err == nil {
		_, err = os.Stat(file) // a lock file that is missing is no empty one here
	}
	if errors.Is(err, fs.ErrNotExist) {
		hint := fmt.Sprintf("`elfhost plugin sync FILE` names another one; what is installed here stands in %s: a team commits a copy of it as %s", a.installs.store.Lock, filepath.ToSlash(ProjectLock("")))
		return nil, fault.New("E1001", hint, "there is no lock file %q to install from", file)
	}
	if err != nil {
		return nil, fault.Wrap("E1323", "", fmt.Errorf("reading the lock file: %w", err))
	}
	here, err := keep.ReadLock(a.installs.store.Lock)
	if err != nil {
		return nil, fault.Wrap("E1323", "", err)
	}
	s := &Sync{File: file, app: a}
	for _, p := range l.Packages {
		have, ok := here.Find(p.Name)
		switch {
		case p.Disabled != "":
			continue
		case ok && a.matches(ctx, *have, p):
			s.Same = append(s.Same, p.Name)
			continue
		}
		c, err := a.wanted(ctx, p)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.Wants = append(s.Wants, Wanted{c, parseGrants(p.Grants, file)})
	}
	for _, p := range here.Packages {
		if _, ok := l.Find(p.Name); !ok {
			s.Extra = append(s.Extra, p.Name)
		}
	}
	return s, nil
}

// matches reports whether a package is here as a lock file has it: in use, with
// what was granted, and every byte of it.
func (a *App) matches(ctx context.Context, have, p keep.Package) bool {
	if have.Digest != p.Digest || have.Disabled != "" || slices.ContainsFunc(p.Grants, func(g string) bool { return !slices.Contains(have.Grants, g) }) {
		return false
	}
	edited, err := a.installs.store.Verify(ctx, have.Pin)
	return err == nil && len(edited) == 0
}

// wanted fetches exactly the version of a lock file.
func (a *App) wanted(ctx context.Context, p keep.Package) (*Candidate, error) {
	var c *Candidate
	_, err := os.Stat(a.installs.store.Blob(p.Digest))
	if err == nil {
		c, err = a.stored(ctx, p, p.Pin)
	} else {
		var ref skillhub.Ref
		if ref, err = skillhub.ParseRef(p.Source); err == nil {
			c, err = a.Prepare(ctx, ref, InstallOptions{WithoutScripts: p.WithoutScripts, Downgrade: true, Digest: p.Digest, Requested: p.Requested})
		}
	}
	if err != nil {
		return nil, installFault(skillhub.Ref{Kind: skillhub.Named, Name: p.Name, Version: p.Version}, err)
	}
	c.Pin.Hub = orElse(c.Pin.Hub, p.Hub)
	if c.Manifest.Name != p.Name || c.Pin.Signer != p.Signer || c.Pin.Needs != p.Needs || c.Pin.Tools != p.Tools {
		return nil, errors.Join(fault.New("E1321", "the lock file was not written for these bytes", "%s %s is not what the lock file says of it", p.Name, p.Version), c.Close())
	}
	return c, nil
}

// Close gives back what was not installed.
func (s *Sync) Close() error {
	var errs []error
	for _, w := range s.Wants {
		errs = append(errs, w.Close())
	}
	return errors.Join(errs...)
}

// Quiet reports whether nobody has to agree to anything.
func (s *Sync) Quiet() bool {
	return !slices.ContainsFunc(s.Wants, func(w Wanted) bool { return !w.Candidate.Quiet() })
}

// Screen shows every package that somebody has to agree to, with what the file
// would grant.
func (s *Sync) Screen() (string, error) {
	var b strings.Builder
	for _, w := range s.Wants {
		if w.Candidate.Quiet() {
			continue
		}
		text, err := w.screen("")
		if err != nil {
			return "", err
		}
		b.WriteString(text)
		var grants []string
		for _, g := range w.Grants {
			grants = append(grants, term.Line(g.String()))
		}
		fmt.Fprintf(&b, "  %-9s%s\n\n", "grants", orElse(strings.Join(grants, "; "), "nothing")+", by the lock file")
	}
	return b.String(), nil
}

// Accept is the digest of the screen.
func (s *Sync) Accept() (skillhub.Digest, error) {
	text, err := s.Screen()
	return skillhub.DigestOf([]byte(text)), err
}

// Apply installs what is wanted, with the grants of the file. It is told of
// each package that is done. Interrupted, it can be run again.
func (s *Sync) Apply(ctx context.Context, done func(*Candidate), progress func(abi.Progress)) error {
	for _, w := range s.Wants {
		if err := w.Commit(ctx, w.Grants, progress); err != nil {
			return err
		}
		done(w.Candidate)
	}
	return nil
}
