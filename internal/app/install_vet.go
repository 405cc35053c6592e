package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/skills"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/plugins"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/keep"
	packfile "github.com/elfhost/elfhost/skillhub/pack"
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
	taken := host.ReservedPackage(name)
	for _, t := range a.all.All() {
		s := t.Spec()
		taken = taken || strings.EqualFold(s.Name, name) && s.Origin.Source != host.Plugin
	}
	if all, err := plugins.All(); err == nil {
		taken = taken || slices.ContainsFunc(all, func(b plugins.Bundle) bool { return b.Name == name })
	}
	if taken {
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
	texts, told, err := textsOf(c.stage.FS())
	if err != nil {
		return err
	}
	c.told = told
	c.Findings = scan.Package(scan.Input{Manifest: c.Manifest, Tools: c.Tools, Texts: texts})
	if c.Old == nil || c.Old.Digest == c.Pin.Digest {
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

// textsOf are the texts of a package, for the scan, and what its skill tells a
// model of itself. That is scanned as the model gets it, too: a field can spell
// it with escapes.
func textsOf(dir fs.FS) (texts []scan.Text, told string, err error) {
	texts, err = scan.Folder(dir)
	for _, t := range texts {
		if t.Name != packfile.SkillFile {
			continue
		}
		if told = skills.Told([]byte(t.Body)); !strings.Contains(t.Body, told) {
			texts = append(texts, scan.Text{Name: "the description in " + packfile.SkillFile, Body: told})
		}
	}
	return texts, told, err
}
