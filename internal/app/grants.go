package app

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/config/granted"
	"github.com/elfhost/elfhost/internal/fault"
)

// grants is what persons gave, from grants.toml of the project and of the
// user, and from --allow. The files are looked at anew at each question, so
// that what another process grants or revokes acts at once. It is the gate's
// Memory.
type grants struct {
	files   [2]*grantFile // project, user
	session []host.Rule   // of --allow
	app     *App
}

// grantFile is one grants.toml, read again when it changed.
type grantFile struct {
	path, layer string

	mu   sync.Mutex
	mod  time.Time
	size int64
	have granted.File
}

func (f *grantFile) read() (granted.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	st, err := os.Stat(f.path)
	if err != nil {
		f.mod, f.size, f.have = time.Time{}, 0, granted.File{}
		if os.IsNotExist(err) {
			err = nil
		}
		return f.have, err
	}
	if st.ModTime().Equal(f.mod) && st.Size() == f.size {
		return f.have, nil
	}
	g, err := granted.Read(f.path, f.layer)
	if err != nil {
		return granted.File{}, err
	}
	f.mod, f.size, f.have = st.ModTime(), st.Size(), g
	return g, nil
}

// openGrants reads both files once, so that a broken one stops the start, and
// the rules of --allow.
func (a *App) openGrants() (*grants, error) {
	g := &grants{app: a, files: [2]*grantFile{
		{path: a.Paths.ProjectGrants(a.Dir), layer: "project"},
		{path: a.Paths.UserGrants(), layer: "user"},
	}}
	for _, f := range g.files {
		if _, err := f.read(); err != nil {
			return nil, fault.Wrap("E1002", "mend the file, or delete it: what it granted is then asked again", err)
		}
	}
	for _, text := range a.opt.Allow {
		r, err := ParseAllow(text)
		if err != nil {
			return nil, fault.Wrap("E1001", "write a rule such as 'Bash(git status:*)', or PLUGIN: CAPABILITY SCOPE", err)
		}
		g.session = append(g.session, r)
	}
	return g, nil
}

// ParseAllow reads what --allow and `grant add` take: a rule about calls
// ("Bash(git status:*)"), a rule about a plugin's tool ("PLUGIN TOOL"), or a
// grant for a plugin, or for one builtin tool ("PLUGIN CAPABILITY SCOPE"; a
// colon may follow the name).
func ParseAllow(text string) (host.Rule, error) {
	name, rest, ok := strings.Cut(text, " ")
	name, rest = strings.TrimSuffix(name, ":"), strings.TrimSpace(rest)
	word, _, _ := strings.Cut(rest, " ")
	if !ok || abi.CheckName(name) != nil && !abi.Capability(word).Known() {
		p, err := policy.ParsePattern(text)
		return host.Rule{Pattern: p.String()}, err
	}
	if abi.Capability(word).Known() {
		g, err := policy.ParseGrant(rest)
		return host.Rule{Plugin: name, Grant: &g}, err
	}
	p, err := policy.ParsePattern(rest)
	return host.Rule{Plugin: name, Pattern: p.String()}, err
}

// Rules are the remembered answers. A file that became unreadable holds none.
func (g *grants) Rules() []host.Rule {
	out := slices.Clone(g.session)
	for _, f := range g.files {
		have, err := f.read()
		if err != nil {
			g.app.note("%v: nothing in it counts until it is mended", err)
			continue
		}
		for _, x := range have.Grants { // of builtin tools; plugins' are asked for by their key
			if x.Digest == "" {
				g := x.Grant()
				out = append(out, host.Rule{Plugin: x.Name, Grant: &g})
			}
		}
		for _, r := range have.Rules {
			if r.Effect == policy.Allow {
				out = append(out, host.Rule{Plugin: r.Plugin, Pattern: r.Pattern.String()})
			}
		}
	}
	return out
}

// Remember keeps an answer for this project.
func (g *grants) Remember(_ context.Context, r host.Rule) error {
	return g.app.Remember(g.files[0].path, g.files[0].layer, r)
}

// Remember writes a rule or a grant to a grants.toml.
func (a *App) Remember(file, layer string, r host.Rule) error {
	return granted.Update(file, layer, func(have *granted.File) error {
		if r.Grant != nil {
			key, ok := a.PluginKey(r.Plugin)
			if s, tool := a.Registry.Spec(r.Plugin); !ok && tool && s.Origin.Source == host.Builtin {
				key, ok = granted.Key{Name: r.Plugin}, true
			}
			if !ok {
				return fault.New("E1304", "`elfhost plugin list` shows them", "there is no plugin %q here", r.Plugin)
			}
			have.Add(key, *r.Grant)
			return nil
		}
		p, err := policy.ParsePattern(r.Pattern)
		if err != nil {
			return err
		}
		have.AddRule(granted.Answer{Rule: policy.Rule{Pattern: p, Effect: policy.Allow}, Plugin: r.Plugin})
		return nil
	})
}

// PluginKey identifies a plugin of this session, by its name or the name of
// one of its tools.
func (a *App) PluginKey(name string) (granted.Key, bool) {
	for _, p := range a.packs() {
		named := func(t abi.ToolDecl) bool { return t.Name == name }
		if p.manifest.Name == name || slices.ContainsFunc(p.tools, named) {
			return p.key(), true
		}
	}
	return granted.Key{}, false
}

// granted is what persons, and for bundled plugins this installation, gave to
// a plugin: the gate asks at each call.
func (a *App) granted(o host.Origin) policy.Grants {
	packs := a.packs()
	i := slices.IndexFunc(packs, func(p pack) bool { return p.manifest.Name == o.Name && p.digest == o.Digest })
	if i < 0 {
		return policy.Grants{}
	}
	out, err := policy.New("grants", a.Grants(packs[i].key())...)
	if err != nil {
		a.note("the grants of %s cannot be used: %v", o.Name, err)
		return policy.Grants{}
	}
	return out
}

// Grants lists what a plugin holds: the installation's own for a bundled one
// less what a person took back, what is in the files, and what --allow adds.
func (a *App) Grants(k granted.Key) []policy.Grant {
	var out []policy.Grant
	var revoked []granted.Grant
	family := a.family(k)
	for _, f := range a.grants.files {
		have, err := f.read()
		if err != nil {
			a.note("%v: nothing in it counts until it is mended", err)
			continue
		}
		for _, k := range family {
			out = append(out, have.For(k)...)
		}
		revoked = append(revoked, have.Revoked...)
	}
	out = append(out, a.lockGrants(k)...)
	for _, g := range a.installed(k) {
		taken := func(r granted.Grant) bool {
			return r.Key == k && r.Cap == g.Cap && (len(r.Scope) == 0 || slices.Equal(r.Scope, g.Scope))
		}
		if !slices.ContainsFunc(revoked, taken) {
			out = append(out, g)
		}
	}
	for _, r := range a.grants.session {
		if key, ok := a.PluginKey(r.Plugin); ok && r.Grant != nil && key == k {
			out = append(out, *r.Grant)
		}
	}
	return out
}

// Revoke takes back grants of a plugin, or a remembered rule, in one file, and
// returns what was taken.
func (a *App) Revoke(file, layer string, r host.Rule) ([]string, error) {
	out, err := a.revokeFile(file, layer, r)
	if key, ok := a.PluginKey(r.Plugin); err == nil && ok && r.Pattern == "" && layer == "user" { // elfhost.lock is the user's as well
		more, lerr := a.revokeLock(context.Background(), key.Name, r.Grant)
		out, err = append(out, more...), lerr
	}
	return out, err
}

func (a *App) revokeFile(file, layer string, r host.Rule) ([]string, error) {
	var out []string
	err := granted.Update(file, layer, func(have *granted.File) error {
		out = nil
		if r.Pattern != "" {
			have.Rules = slices.DeleteFunc(have.Rules, func(x granted.Answer) bool {
				hit := x.Pattern.String() == r.Pattern && x.Plugin == r.Plugin
				if hit {
					out = append(out, x.String())
				}
				return hit
			})
			return nil
		}
		key, ok := a.PluginKey(r.Plugin)
		name := r.Plugin
		if ok {
			name = key.Name
		}
		var want policy.Grant
		if r.Grant != nil {
			want = *r.Grant
		}
		for _, g := range have.Revoke(key.Publisher, name, want) {
			out = append(out, fmt.Sprintf("%s: %s", name, g.Grant()))
		}
		for _, g := range a.installed(key) {
			if r.Grant == nil || g.Cap == want.Cap && (len(want.Scope) == 0 || slices.Equal(g.Scope, want.Scope)) {
				have.Revoked = append(have.Revoked, granted.Grant{Key: key, Cap: g.Cap, Scope: g.Scope})
				out = append(out, fmt.Sprintf("%s: %s (of this installation)", name, g))
			}
		}
		return nil
	})
	return out, err
}

// Holding is one grant that a plugin of this session has.
type Holding struct {
	Plugin string
	Grant  policy.Grant // Where says who gave it
}

// Holdings lists the grants of all plugins of this session.
func (a *App) Holdings() []Holding {
	var out []Holding
	for _, p := range a.packs() {
		for _, g := range a.Grants(p.key()) {
			out = append(out, Holding{p.manifest.Name, g})
		}
	}
	return out
}
