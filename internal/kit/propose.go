package kit

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
	"github.com/elfhost/elfhost/host/foreign/javascript"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/pdk/golden"
)

// maxRounds bounds how often a case is run to see what it asks for next: a
// plugin that is denied one thing rarely asks for the following.
const maxRounds = 8

// Propose runs the cases and lists what they ask for that the manifest does
// not: the needs to add to elf.toml, each as narrow as what was seen. A case
// is given what it asks for, in a world that is made of its answers.
func Propose(ctx context.Context, pkg sandbox.Package, cases []golden.Case, compiler, cache string) (needs []abi.Need, err error) {
	declared, err := policy.FromNeeds(pkg.Manifest.Needs)
	if err != nil {
		return nil, err
	}
	wide, err := widened(pkg)
	if err != nil {
		return nil, err
	}
	b, err := Open(ctx, wide, compiler, cache)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close(context.WithoutCancel(ctx))) }()
	var p proposal
	for _, c := range cases {
		if c.Recording != nil {
			continue
		}
		if err := b.watch(ctx, c, func(u policy.Use) {
			if declared.Check(u) != nil {
				p.add(u)
			}
		}); err != nil {
			return nil, err
		}
	}
	return p.needs(), nil
}

// Uncovered watches the calls that follow. It returns a function that reports
// whether one used what the manifest does not ask for.
func (b *Bench) Uncovered() (func() bool, error) {
	declared, err := policy.FromNeeds(b.pkg.Manifest.Needs)
	if err != nil {
		return nil, err
	}
	found := false
	b.seen = func(u policy.Use, _ error) { found = found || declared.Check(u) != nil }
	return func() bool { return found }, nil
}

// ProposeFor is the need that would cover one use; false when none can.
func ProposeFor(u policy.Use) (abi.Need, bool) {
	var p proposal
	p.add(u)
	if n := p.needs(); len(n) == 1 {
		return n[0], true
	}
	return abi.Need{}, false
}

// watch runs a case until it asks for nothing new, and tells of each use.
func (b *Bench) watch(ctx context.Context, c golden.Case, tell func(policy.Use)) error {
	for range maxRounds {
		var denied []string
		b.seen = func(u policy.Use, err error) {
			tell(u)
			if g, ok := narrowest(u); ok && err != nil {
				denied = append(denied, g.String())
			}
		}
		_, _, _ = b.Call(ctx, c) // however it ends: what it asked for counts
		b.seen = nil
		if ctx.Err() != nil {
			return ctx.Err()
		}
		before := len(c.Grants)
		for _, g := range denied {
			if !slices.Contains(c.Grants, g) {
				c.Grants = append(slices.Clip(c.Grants), g)
			}
		}
		if len(c.Grants) == before {
			return nil
		}
	}
	return nil
}

// widened is the package as if its manifest asked for all that it can use, so
// that it loads and runs up to the point where something is to be decided.
func widened(pkg sandbox.Package) (sandbox.Package, error) {
	scopes := map[abi.Capability]string{
		abi.FSRead: "/ws/**", abi.FSWrite: "/ws/**", abi.NetHTTP: "public", abi.Exec: "none *", abi.Env: "NONE", abi.Secret: "none@none.example",
		abi.KV: "1MiB", abi.Model: "1k tokens", abi.ToolCall: "None",
	}
	m := pkg.Manifest
	for _, c := range abi.Capabilities() {
		if s, ok := scopes[c]; ok && !slices.ContainsFunc(m.Needs, func(n abi.Need) bool { return n.Cap == c }) {
			m.Needs = append(slices.Clip(m.Needs), abi.Need{Cap: c, Scope: []string{s}})
		}
	}
	pkg.Manifest = m
	wasm, err := pkg.Wasm()
	if err != nil || pkg.Format == nil || !javascript.Detect(wasm) {
		return pkg, err
	}
	pkg.Format, err = javascript.New(wasm, m.Needs) // what a script finds depends on what is asked for
	return pkg, err
}

// narrowest is the smallest grant that would allow a use.
func narrowest(u policy.Use) (policy.Grant, bool) {
	none, err := policy.New("nothing")
	if err != nil {
		return policy.Grant{}, false
	}
	var d *policy.Denial
	if errors.As(none.Check(u), &d) && d.Grant.Cap != "" {
		return d.Grant, true
	}
	return policy.Grant{}, false
}

// proposal collects scopes by capability, in the order in which they were seen.
type proposal struct {
	order  []abi.Capability
	scopes map[abi.Capability][]string
}

func (p *proposal) add(u policy.Use) {
	g, ok := narrowest(u)
	if !ok {
		return
	}
	if p.scopes == nil {
		p.scopes = map[abi.Capability][]string{}
	}
	if _, known := p.scopes[g.Cap]; !known {
		p.order = append(p.order, g.Cap)
	}
	list := p.scopes[g.Cap]
	for _, s := range g.Scope {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	p.scopes[g.Cap] = list
}

// manyFiles is from how many files of a folder on the folder is meant.
const manyFiles = 3

func (p *proposal) needs() []abi.Need {
	var out []abi.Need
	for _, c := range p.order {
		list := p.scopes[c]
		if c == abi.FSRead || c == abi.FSWrite {
			list = folders(list)
		}
		out = append(out, abi.Need{Cap: c, Scope: list})
	}
	return out
}

// folders puts a folder in the place of several of its files.
func folders(list []string) []string {
	count := map[string]int{}
	for _, s := range list {
		count[dirOf(s)]++
	}
	var out []string
	for _, s := range list {
		if d := dirOf(s); count[d] >= manyFiles && d != "" {
			s = d + "/**"
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

func dirOf(s string) string {
	if i := strings.LastIndexByte(s, '/'); i > 0 {
		return s[:i]
	}
	return ""
}

// TOML writes needs as elf.toml has them. The reasons are the author's to give.
func TOML(needs []abi.Need) string {
	var b strings.Builder
	for i, n := range needs {
		if i > 0 {
			b.WriteString("\n")
		}
		scopes := make([]string, len(n.Scope))
		for i, s := range n.Scope {
			scopes[i] = quote(s)
		}
		fmt.Fprintf(&b, "[[needs]]\ncap = %s\nscope = [%s]\nreason = %s  # say why: a person reads it\n", quote(string(n.Cap)), strings.Join(scopes, ", "), quote(n.Reason))
	}
	return b.String()
}

// quote writes a basic string of TOML: JSON's escapes are among its own.
func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return `""` // a string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// AddNeeds appends needs to the elf.toml in dir.
func AddNeeds(dir string, needs []abi.Need) error {
	name := filepath.Join(dir, "elf.toml")
	old, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	st, err := os.Stat(name)
	if err != nil {
		return err
	}
	// Tables may follow in any order, so the end of the file is as good as any.
	text := strings.TrimRight(string(old), "\n") + "\n\n" + TOML(needs)
	tmp := name + ".new"
	if err := os.WriteFile(tmp, []byte(text), st.Mode().Perm()); err != nil {
		return err
	}
	return os.Rename(tmp, name)
}
