package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/plugins"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/keep"
	"github.com/elfhost/elfhost/skillhub/scan"
	"github.com/elfhost/elfhost/skillhub/sign"
)

// vet says what the code could do at most, and refuses what asks for less than
// that (HUB-14), and what takes a name of ours.
func (c *Candidate) vet(context.Context) error {
	if err := c.app.freeName(c.Manifest.Name); err != nil {
		return err
	}
	if c.pkg.Wasm == nil {
		return nil
	}
	wasm, err := c.pkg.Wasm()
	if err != nil {
		return err
	}
	var in sandbox.Inspection
	if c.pkg.Format == nil {
		in, err = sandbox.Inspect(wasm)
	} else {
		in, err = sandbox.InspectAs(wasm, c.pkg.Format)
	}
	if err != nil {
		return err
	}
	if in.Refused != "" {
		return fault.New("E1302", "", "elfhost would not load the module of %s: %s", c.Manifest.Name, in.Refused)
	}
	c.Inspection = &in
	if c.pkg.Format != nil {
		return nil // a format's imports are offered by need
	}
	var missing []string
	for _, have := range in.Capabilities {
		if !slices.ContainsFunc(c.Manifest.Needs, func(n abi.Need) bool { return n.Cap == have }) {
			missing = append(missing, string(have))
		}
	}
	if len(missing) > 0 {
		return fault.New("E1305", "the author adds a [[needs]] with a reason for each", "the module of %s imports %s, which its elf.toml does not name", c.Manifest.Name, strings.Join(missing, ", "))
	}
	return nil
}

// freeName refuses a package that is called like something of ours.
func (a *App) freeName(name string) error {
	taken := host.Reserved(name)
	for _, t := range a.all.All() {
		s := t.Spec()
		taken = taken || strings.EqualFold(s.Name, name) && s.Origin.Source != host.Plugin
	}
	if all, err := plugins.All(); err == nil {
		taken = taken || slices.ContainsFunc(all, func(b plugins.Bundle) bool { return b.Name == name })
	}
	if slices.Contains([]string{"webfetch", "websearch", "imageanalysis"}, name) || taken {
		return fault.New("E1320", "", "a package cannot be called %q: that is a tool or a plugin of elfhost's own", name)
	}
	return nil
}

// describe finds the tools' definitions: those that are packed, else those of
// the manifest, else the module is asked in a sandbox without rights. Once
// somebody agreed, confirm holds the packed ones against the module's own.
func (c *Candidate) describe(ctx context.Context) error {
	if c.pkg.Wasm == nil {
		return nil
	}
	packed := sign.Tools(c.contents)
	switch {
	case c.contents.Description != nil:
		if err := c.agree(packed, c.Manifest.Tools, "describe.json", "elf.toml"); err != nil {
			return err
		}
		c.Tools = packed
	case len(c.Manifest.Tools) > 0:
		c.Tools = c.Manifest.Tools
	default:
		tools, err := c.asks(ctx)
		if err != nil {
			return err
		}
		c.Tools = tools
	}
	var err error
	c.Pin.Tools, err = skillhub.ToolsDigest(c.Tools)
	return err
}

// agree is an error where both are there and differ.
func (c *Candidate) agree(a, b []abi.ToolDecl, an, bn string) error {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	x, err := skillhub.ToolsDigest(a)
	if err != nil {
		return err
	}
	y, err := skillhub.ToolsDigest(b)
	if err != nil {
		return err
	}
	if x != y {
		return fault.New("E1321", "the author builds and packs it again", "the tools that %s of %s tells of are not those of %s", an, c.Manifest.Name, bn)
	}
	return nil
}

// DescribeFolder asks the module of a folder what its tools are, in a sandbox
// without rights, and returns the text of describe.json: nil where elf.toml
// says it already.
func DescribeFolder(ctx context.Context, dir string) ([]byte, error) {
	pkg, _, err := ReadPackage(dir)
	if err != nil || len(pkg.Manifest.Tools) > 0 {
		return nil, err
	}
	paths, err := config.FindPaths(os.Getenv)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	l := sandbox.Loader{Dir: filepath.Join(paths.Cache, "wasm"), Compiler: self}
	p, err := l.Load(ctx, pkg)
	if err != nil {
		return nil, err
	}
	b, err := json.MarshalIndent(p.Description(), "", "  ")
	return append(b, '\n'), errors.Join(err, p.Close(ctx))
}

// asks runs elf_describe.
func (c *Candidate) asks(ctx context.Context) ([]abi.ToolDecl, error) {
	pkg := c.pkg
	pkg.Description = nil
	p, err := c.app.Loader.Load(ctx, pkg)
	if err != nil {
		return nil, err
	}
	return p.Description().Tools, p.Close(ctx)
}

// compare finds what is unusual, and what is new against the installed version.
func (c *Candidate) compare(context.Context) error {
	texts, err := scan.Folder(c.stage.FS())
	if err != nil {
		return err
	}
	c.Findings = scan.Package(scan.Input{Manifest: c.Manifest, Tools: c.Tools, Texts: texts})
	if c.Old == nil {
		return nil
	}
	old, err := c.app.installs.store.Pinned(c.Old.Pin)
	if err != nil {
		return fmt.Errorf("comparing with the installed version: %w", err)
	}
	c.Change = changeOf(c.Old.Pin, old, c.Pin, keep.Pinned{Manifest: c.Manifest, Tools: c.Tools})
	was := scan.Package(scan.Input{Manifest: old.Manifest, Tools: old.Tools, Texts: c.app.storedTexts(c.Old.Pin)})
	for _, f := range c.Findings {
		if !slices.ContainsFunc(was, func(o scan.Finding) bool { return o.Rule == f.Rule && o.Says == f.Says }) {
			c.Change.Unusual = append(c.Change.Unusual, f.Says)
		}
	}
	return nil
}

// Change is how one version of a package differs from another.
type Change struct {
	From, To string   // versions
	Asks     []string // what only the new one asks for: "net.http https://a.test GET"
	Drops    []string // what it does not ask for any more
	Tools    []string // "+name", "-name", "~name" where texts or schemas changed
	Text     bool     // SKILL.md changed
	Signer   string   // "RWQ…a → RWQ…b"; "" is the same
	Unusual  []string // what is unusual about the new one alone
}

// Grew reports whether a person has to agree anew (HUB-08, HUB-09): it asks for
// more, tells the model something else, is another's, or became unusual.
func (c Change) Grew() bool {
	return len(c.Asks) > 0 || len(c.Tools) > 0 || c.Signer != "" || len(c.Unusual) > 0
}

// Lines are the difference in at most one line each of what it asks, what it
// tells the model, and whose it is.
func (c Change) Lines() (out []string) {
	var asks []string
	for _, a := range c.Asks {
		asks = append(asks, "+ "+a)
	}
	for _, d := range c.Drops {
		asks = append(asks, "- "+d)
	}
	add := func(label string, parts []string, none string) {
		text := none
		if len(parts) > 0 {
			text = strings.Join(parts, ", ")
		}
		out = append(out, label+text)
	}
	add("asks    ", asks, "as before")
	tools := slices.Clone(c.Tools)
	if c.Text {
		tools = append(tools, "~SKILL.md")
	}
	for _, u := range c.Unusual {
		tools = append(tools, "! "+u)
	}
	add("texts   ", tools, "as before")
	if c.Signer == "" {
		out = append(out, "signer  as before")
	} else {
		out = append(out, "signer  "+c.Signer)
	}
	return out
}

func changeOf(a keep.Pin, was keep.Pinned, b keep.Pin, is keep.Pinned) Change {
	c := Change{From: a.Version, To: b.Version, Text: a.Skill != b.Skill}
	old, now := needTexts(was.Manifest.Needs), needTexts(is.Manifest.Needs)
	for _, n := range now {
		if !slices.Contains(old, n) {
			c.Asks = append(c.Asks, n)
		}
	}
	for _, n := range old {
		if !slices.Contains(now, n) {
			c.Drops = append(c.Drops, n)
		}
	}
	c.Tools = toolChanges(was.Tools, is.Tools)
	if a.Signer != b.Signer {
		short := func(k string) string {
			if k == "" {
				return "nobody"
			}
			return sign.Signer{Key: k}.Short()
		}
		c.Signer = short(a.Signer) + " → " + short(b.Signer)
	}
	return c
}

func needTexts(needs []abi.Need) (out []string) {
	for _, n := range needs {
		for _, g := range eachScope(policy.Grant{Cap: n.Cap, Scope: n.Scope}) {
			out = append(out, g.String())
		}
	}
	return out
}

func toolChanges(was, is []abi.ToolDecl) (out []string) {
	find := func(in []abi.ToolDecl, name string) *abi.ToolDecl {
		i := slices.IndexFunc(in, func(t abi.ToolDecl) bool { return t.Name == name })
		if i < 0 {
			return nil
		}
		return &in[i]
	}
	for _, t := range is {
		o := find(was, t.Name)
		if o == nil {
			out = append(out, "+"+t.Name)
			continue
		}
		x, _ := skillhub.ToolsDigest([]abi.ToolDecl{*o}) // both came from JSON
		if y, _ := skillhub.ToolsDigest([]abi.ToolDecl{t}); x != y {
			out = append(out, "~"+t.Name)
		}
	}
	for _, t := range was {
		if find(is, t.Name) == nil {
			out = append(out, "-"+t.Name)
		}
	}
	return out
}

// storedTexts are the texts of an installed version; what cannot be read is
// not there.
func (a *App) storedTexts(p keep.Pin) []scan.Text {
	texts, err := scan.Folder(a.installs.store.FS(p.Digest))
	if err != nil {
		return nil
	}
	return texts
}
