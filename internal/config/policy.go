package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/policy/packages"
	"github.com/elfhost/elfhost/internal/config/strict"
)

// readPolicy reads a policy.toml as one layer. file names it in errors and
// reasons. Of several things that are wrong the error is the first;
// CheckPolicyFile gives all.
func readPolicy(b []byte, kind policy.LayerKind, file string) (policy.Layer, error) {
	var f policyFile
	ls, err := strict.Decode(b, file, &f)
	if err != nil {
		return policy.Layer{}, err
	}
	l, problems := f.layer(kind, file, ls)
	if len(problems) > 0 {
		return l, problems[0]
	}
	// The layer must stand as a whole, too.
	_, err = policy.NewPolicy(l)
	return l, err
}

// policyReader makes a layer of a decoded file and notes what is wrong.
type policyReader struct {
	file     string
	ls       strict.Lines
	problems []*strict.Error
}

func (r *policyReader) bad(key, format string, args ...any) {
	err := r.ls.Fail(r.file, key, format, args...)
	r.problems = append(r.problems, err.(*strict.Error))
}

// first is key, or what holds it where key itself is not in the file.
func (r *policyReader) first(key, above string) string {
	if !r.ls.Has(key) {
		return above
	}
	return key
}

// layer judges what the types cannot.
func (f *policyFile) layer(kind policy.LayerKind, file string, ls strict.Lines) (policy.Layer, []*strict.Error) {
	r := &policyReader{file: file, ls: ls}
	l := policy.Layer{
		Kind: kind, File: file, RestrictToWorkspace: f.RestrictToWorkspace, RequireSandbox: f.RequireSandbox,
		DenyMultilink: f.DenyMultilink, ExecTime: f.ExecTime.Duration, Lines: ls.Numbers(),
		Network: policy.Network{Off: f.Network.Off, Proxy: f.Network.Proxy, CAFile: f.Network.CAFile, ClientCert: f.Network.ClientCert, ClientKey: f.Network.ClientKey, Listen: f.Network.Listen},
	}
	switch f.Default {
	case "", "allow":
	case "deny":
		l.DefaultDeny = true
	default:
		r.bad("default", `default is "allow" or "deny", not %q`, f.Default)
	}
	if f.Modes != nil {
		l.Modes = append([]string{}, *f.Modes...)
	}
	for i, m := range l.Modes {
		if err := (*policy.Policy)(nil).ModeAllowed(m); err != nil {
			r.bad(fmt.Sprintf("modes[%d]", i), "%w", err)
		}
	}
	l.Allow = r.ceilings("allow", f.Allow, func(g []policy.Grant) policy.Layer { return policy.Layer{Allow: g} })
	l.Deny = r.ceilings("deny", f.Deny, func(g []policy.Grant) policy.Layer { return policy.Layer{Deny: g} })
	l.Tools = r.tools(f)
	var err error
	if l.Limits, err = f.Limits.Checked(file, ls); err != nil {
		r.problems = append(r.problems, err.(*strict.Error))
	}
	for i, text := range f.Network.Private {
		block, err := policy.ParsePrivate(text)
		if err != nil {
			r.bad(fmt.Sprintf("network.private[%d]", i), "%w", err)
			continue
		}
		l.PrivateHosts = append(l.PrivateHosts, block)
	}
	r.network(l.Network)
	l.Packages = r.packages(f)
	l.PerPlugin = r.ceilings("packages.ceiling", f.Packages.Ceiling, func(g []policy.Grant) policy.Layer { return policy.Layer{PerPlugin: g} })
	return l, r.problems
}

// ceilings reads an array of capabilities with scopes, each scope as a grant
// with a line of its own. alone puts one into a layer, to see whether it stands.
func (r *policyReader) ceilings(table string, in []capFile, alone func([]policy.Grant) policy.Layer) []policy.Grant {
	var out []policy.Grant
	add := func(key string, g policy.Grant) {
		g.Where = r.ls.Where(r.file, key)
		if _, err := policy.NewPolicy(alone([]policy.Grant{{Cap: g.Cap, Scope: g.Scope, Where: "-"}})); err != nil {
			r.bad(key, "%s", strings.TrimPrefix(err.Error(), "-: "))
			return
		}
		out = append(out, g)
	}
	for i, c := range in {
		key := fmt.Sprintf("%s[%d]", table, i)
		scope, err := strict.Texts(c.Scope)
		switch {
		case err != nil:
			r.bad(key+".scope", "scope: %w", err)
		case !abi.Capability(c.Cap).Known():
			r.bad(r.first(key+".cap", key), "unknown capability %q", c.Cap)
		case len(scope) == 0 && c.Scope != nil:
			r.bad(key+".scope", "an empty scope says nothing; leave it out, or deny the capability")
		case len(scope) == 0:
			add(key, policy.Grant{Cap: abi.Capability(c.Cap)})
		}
		for j, s := range scope {
			add(r.first(fmt.Sprintf("%s.scope[%d]", key, j), key+".scope"), policy.Grant{Cap: abi.Capability(c.Cap), Scope: []string{s}})
		}
	}
	return out
}

func (r *policyReader) tools(f *policyFile) []policy.Rule {
	var out []policy.Rule
	for _, set := range []struct {
		effect   policy.Effect
		patterns []string
	}{{policy.Deny, f.Tools.Deny}, {policy.Ask, f.Tools.Ask}, {policy.Only, f.Tools.Only}, {policy.Allow, f.Tools.Allow}} {
		for i, text := range set.patterns {
			key := fmt.Sprintf("tools.%s[%d]", set.effect, i)
			p, err := policy.ParsePattern(text)
			if err != nil {
				r.bad(key, "%w", err)
				continue
			}
			out = append(out, policy.Rule{Pattern: p, Effect: set.effect, Where: r.ls.Where(r.file, key)})
		}
	}
	return out
}

func (r *policyReader) network(n policy.Network) {
	if host, port, err := net.SplitHostPort(n.Listen); n.Listen != "" && (err != nil || host == "" || port == "" || port == "0") {
		r.bad("network.listen", "network.listen is not an address such as 10.0.0.5:7332")
	}
	if n.Proxy != "" {
		u, err := url.Parse(n.Proxy)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" {
			r.bad("network.proxy", "network.proxy is not a URL such as http://proxy.example:3128")
		}
	}
	for _, f := range []struct{ key, path string }{{"ca_file", n.CAFile}, {"client_cert", n.ClientCert}, {"client_key", n.ClientKey}} {
		if f.path != "" && !filepath.IsAbs(f.path) {
			r.bad("network."+f.key, "network.%s is not an absolute path: %q", f.key, f.path)
		}
	}
	if (n.ClientCert == "") != (n.ClientKey == "") {
		r.bad("network", "network.client_cert and network.client_key go together")
	}
}

// packages reads the rules about packages.
func (r *policyReader) packages(f *policyFile) packages.Rules {
	var out packages.Rules
	var err error
	if text := f.Packages.Signature; text != "" {
		if out.Least, err = packages.ParseSignature(text); err != nil {
			r.bad("packages.signature", "packages.%w", err)
		}
		out.Where = r.ls.Where(r.file, "packages.signature")
	}
	for i, caps := range f.Packages.NeverTogether {
		key := fmt.Sprintf("packages.never_together[%d]", i)
		a := packages.Apart{Where: r.ls.Where(r.file, key)}
		for _, c := range caps {
			if !abi.Capability(c).Known() {
				r.bad(key, "unknown capability %q", c)
			}
			a.Caps = append(a.Caps, abi.Capability(c))
		}
		if len(caps) < 2 {
			r.bad(key, `packages.never_together lists groups of at least two capabilities, such as [["fs.read", "net.http"]]`)
		}
		out.Apart = append(out.Apart, a)
	}
	for _, deny := range []bool{true, false} {
		set, table := f.Packages.Allow, "packages.allow."
		if deny {
			set, table = f.Packages.Deny, "packages.deny."
		}
		for _, list := range []struct {
			kind  packages.Kind
			key   string
			texts []string
		}{{packages.Name, "names", set.Names}, {packages.Publisher, "publishers", set.Publishers}, {packages.Key, "keys", set.Keys}, {packages.Hub, "hubs", set.Hubs}} {
			if list.texts != nil && len(list.texts) == 0 {
				r.bad(table+list.key, "an empty list says nothing; leave it out")
			}
			for i, text := range list.texts {
				key := fmt.Sprintf("%s%s[%d]", table, list.key, i)
				rule, err := packages.ParseRule(list.kind, deny, text, r.ls.Where(r.file, key))
				if err != nil {
					r.bad(key, "%w", err)
					continue
				}
				out.Rules = append(out.Rules, rule)
			}
		}
	}
	return out
}

// LoadPolicy reads the layers that exist: the system's, the user's, the
// project's (project may be ""), and the file that ELFHOST_POLICY names, which
// must exist. A file that cannot be read, or says anything wrongly, is an
// error: nothing starts without its policy.
func LoadPolicy(p Paths, project string) (*policy.Policy, error) {
	var layers []policy.Layer
	for _, f := range PolicyFiles(p, project) {
		b, present, err := strict.ReadIfPresent(f.Path)
		switch {
		case err != nil:
			return nil, fmt.Errorf("reading the %s: %w", f.Kind, err)
		case !present && f.Kind == policy.Extra:
			return nil, &strict.Error{File: f.Path, Err: errors.New("ELFHOST_POLICY names this file, which does not exist")}
		case !present:
			continue
		}
		l, err := readPolicy(b, f.Kind, f.Path)
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	return policy.NewPolicy(layers...)
}

// PolicyFile is a place where a policy may lie.
type PolicyFile struct {
	Kind policy.LayerKind
	Path string
}

// PolicyFiles lists the places where policies may lie, whether they exist or
// not. project may be "".
func PolicyFiles(p Paths, project string) []PolicyFile {
	files := []PolicyFile{{policy.System, p.SystemPolicy}, {policy.User, p.UserPolicy()}}
	if project != "" {
		files = append(files, PolicyFile{policy.Project, ProjectPolicy(project)})
	}
	if p.ExtraPolicy != "" {
		files = append(files, PolicyFile{policy.Extra, p.ExtraPolicy})
	}
	return slices.DeleteFunc(files, func(f PolicyFile) bool { return f.Path == "" })
}
