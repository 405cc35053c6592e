package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/config/manifest"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/keep"
	packfile "github.com/elfhost/elfhost/skillhub/pack"
	"github.com/elfhost/elfhost/skillhub/scan"
	"github.com/elfhost/elfhost/skillhub/sign"
)

// InstallOptions say how a package is taken in. The zero value is strict.
type InstallOptions struct {
	WithoutScripts bool // leave scripts out rather than refuse
	Downgrade      bool // an older version than the installed one will do
	// Digest, where it is not empty, is what the archive must have.
	Digest skillhub.Digest
	// Requested is where updates are looked for; "" is the reference itself.
	Requested string
}

// Candidate is a package that was fetched, verified and looked at, and waits
// for a person. Close it. Nothing is installed before Commit.
type Candidate struct {
	Manifest   abi.Manifest
	Tools      []abi.ToolDecl
	Pin        keep.Pin // without grants
	Vouched    string   // what stands for it beside its signature
	FirstKey   bool     // its key would be pinned for its publisher
	Inspection *sandbox.Inspection
	Format     string   // of another format's plugin; "" is elf/1
	Notes      []string // what of that format's configuration is not honoured
	Findings   []scan.Finding
	Left       []string      // what was not unpacked
	Old        *keep.Package // the installed version; nil: none
	AsBefore   bool          // nobody is asked: what a person disabled stays so
	Change     Change        // against Old

	app       *App
	stage     *keep.Stage
	contents  *packfile.Contents
	pkg       sandbox.Package // Wasm is nil for a text
	requested string
	told      string // of its skill, to the model
}

// Close gives back what Commit did not take.
func (c *Candidate) Close() error { return c.stage.Close() }

// Prepare fetches a package, verifies it, holds it against the policy, and
// looks at what is in it. Nothing of it runs but, where it does not say what
// its tools are, elf_describe, in a sandbox without rights.
func (a *App) Prepare(ctx context.Context, ref skillhub.Ref, o InstallOptions) (*Candidate, error) {
	if err := a.judged(a.Policy.Package(a.Known(ref))); err != nil { // before anything is fetched
		return nil, err
	}
	stage, err := a.installs.store.Stage()
	if err != nil {
		return nil, fault.Wrap("E1501", "`elfhost doctor` checks the folders", err)
	}
	c := &Candidate{app: a, stage: stage, requested: o.Requested}
	if c.requested == "" {
		c.requested = ref.String()
	}
	if err := c.prepare(ctx, ref, o); err != nil {
		return nil, errors.Join(installFault(ref, err), stage.Close())
	}
	return c, nil
}

func (c *Candidate) prepare(ctx context.Context, ref skillhub.Ref, o InstallOptions) error {
	got, err := c.fetch(ctx, ref, o)
	if err != nil {
		return err
	}
	want := got.Digest
	if o.Digest != "" {
		want = o.Digest
	}
	if err := c.stage.Unpack(ctx, want, packfile.Options{WithoutScripts: o.WithoutScripts, Foreign: true}); err != nil {
		return err
	}
	c.contents, c.Left, c.Vouched = c.stage.Contents, c.stage.Contents.Left, got.Vouched
	c.Pin = keep.Pin{Source: got.Source, Hub: c.app.place(got), Digest: c.stage.Digest, Size: c.stage.Size,
		WithoutScripts: o.WithoutScripts, Foreign: c.contents.Manifest == nil}
	if ref.Kind == skillhub.Local {
		c.requested = got.Source // a relative path means nothing elsewhere
	}
	for _, step := range []func(context.Context) error{c.identify, c.verify, c.vet, c.describe, c.compare} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := c.listed(got.Listing); err != nil {
		return err
	}
	return c.older(o)
}

// fetch brings the archive to the stage. One module alone becomes a package of
// its own.
func (c *Candidate) fetch(ctx context.Context, ref skillhub.Ref, o InstallOptions) (skillhub.Fetched, error) {
	src, err := c.app.source(ref.Kind, o)
	if err != nil {
		return skillhub.Fetched{}, err
	}
	got, err := src.Fetch(ctx, ref, c.stage)
	if err != nil || got.Form != skillhub.Module {
		return got, err
	}
	r, err := c.stage.Archive()
	if err != nil {
		return got, err
	}
	wasm, err := io.ReadAll(io.LimitReader(r, maxModule+1))
	if err != nil {
		return got, err
	}
	if err := c.stage.Reset(); err != nil {
		return got, err
	}
	entry := packfile.Entry{Name: moduleName(ref), Size: int64(len(wasm)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(wasm)), nil
	}}
	_, err = packfile.Write(ctx, c.stage, []packfile.Entry{entry}, packfile.Options{Foreign: true})
	got.Digest = "" // of the module; what was packed here nobody promised
	return got, err
}

// identify finds out what the package is called and what its module is.
func (c *Candidate) identify(context.Context) error {
	m := c.contents.Manifest
	if m != nil && c.contents.Kind() == skillhub.Text {
		c.Manifest = *m
		return nil
	}
	pkg, notes, err := ReadPackage(c.stage.Dir())
	if err != nil {
		return err
	}
	c.pkg, c.Manifest, c.Notes = pkg, pkg.Manifest, notes
	if pkg.Format != nil {
		c.Format = pkg.Format.Name
	}
	c.Pin.Module = skillhub.Digest("sha256:" + pkg.Digest)
	return nil
}

// verify checks the signature, whose key it is, and what the policy says.
func (c *Candidate) verify(context.Context) error {
	signer, err := sign.Verify(c.contents)
	if err != nil {
		return err
	}
	l, err := keep.ReadLock(c.app.installs.store.Lock)
	if err != nil {
		return err
	}
	if c.FirstKey, err = l.Publishers.Check(c.Manifest.Publisher, signer); err != nil {
		return err
	}
	c.Pin.Version, c.Pin.Publisher, c.Pin.Needs = c.Manifest.Version, c.Manifest.Publisher, manifest.NeedsHash(c.Manifest.Needs)
	if signer != nil {
		c.Pin.Signer = signer.Key
	}
	if f, ok := c.contents.File(packfile.SkillFile); ok {
		c.Pin.Skill = f.Digest
	}
	if old, ok := l.Find(c.Manifest.Name); ok {
		c.Old = old
	}
	return c.app.judged(c.app.Policy.Package(pinFacts(c.Manifest.Name, c.Pin, c.Manifest.Needs, l)))
}

// listed holds the package against what its hub says of it (HUB-13): a hub
// cannot show one thing and serve another.
func (c *Candidate) listed(l *skillhub.Listing) error {
	if l == nil {
		return nil
	}
	for _, x := range []struct{ what, said, is string }{
		{"name", l.Name, c.Manifest.Name}, {"version", l.Version, c.Manifest.Version}, {"publisher", l.Publisher, c.Manifest.Publisher},
		{"digest", string(l.Digest), string(c.Pin.Digest)}, {"key", l.KeyID, sign.Signer{Key: c.Pin.Signer}.KeyID()},
	} {
		if x.said != "" && x.said != x.is {
			return fmt.Errorf("%w: the hub says that the %s is %q, and it is %q", skillhub.ErrMismatch, x.what, x.said, x.is)
		}
	}
	if l.Needs != nil && manifest.NeedsHash(l.Needs) != c.Pin.Needs {
		return fmt.Errorf("%w: the hub says that it asks for something else than it does", skillhub.ErrMismatch)
	}
	return nil
}

// older refuses to go back without being told to (HUB-07).
func (c *Candidate) older(o InstallOptions) error {
	if c.Old == nil || o.Downgrade || skillhub.CompareVersions(c.Manifest.Version, c.Old.Version) >= 0 {
		return nil
	}
	return fault.New("E1322", "--allow-downgrade takes it all the same; `elfhost plugin rollback "+c.Manifest.Name+"` goes back to what was installed before",
		"%s %s is older than %s, which is installed: %w", c.Manifest.Name, c.Manifest.Version, c.Old.Version, skillhub.ErrRollback)
}

// Quiet reports whether the package may be installed without a question: it
// can do nothing, asks for nothing, and nothing about it is unusual.
func (c *Candidate) Quiet() bool {
	if len(c.Manifest.Needs) > 0 || len(c.Findings) > 0 || c.Old != nil && c.Change.Grew() {
		return false
	}
	return c.Inspection == nil || len(c.Inspection.Capabilities) == 0
}

// Agreed reports whether exactly these bytes are installed, and somebody agreed
// to them.
func (c *Candidate) Agreed() bool {
	return c.Old != nil && c.Old.Digest == c.Pin.Digest && c.Old.Disabled != Unasked
}

// Whole reports whether the installed version is as it was installed.
func (c *Candidate) Whole(ctx context.Context) bool {
	edited, err := c.app.installs.store.Verify(ctx, c.Old.Pin)
	return err == nil && len(edited) == 0
}

// ask is what the package asks for, one scope each.
func (c *Candidate) ask() (out []policy.Grant) {
	for _, n := range c.Manifest.Needs {
		out = append(out, eachScope(policy.Grant{Cap: n.Cap, Scope: n.Scope})...)
	}
	return out
}

// Asked is what the package asks for, one scope each: what a person may grant.
func (c *Candidate) Asked() []policy.Grant { return c.ask() }

// eachScope takes a grant apart.
func eachScope(g policy.Grant) (out []policy.Grant) {
	if len(g.Scope) == 0 {
		return []policy.Grant{g}
	}
	for _, s := range g.Scope {
		out = append(out, policy.Grant{Cap: g.Cap, Scope: []string{s}, Where: g.Where})
	}
	return out
}
