package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy/packages"
)

// LayerKind says whose file a layer is, and so what it may say.
type LayerKind int

// The kinds of policy layers, in the order in which they are asked.
const (
	System  LayerKind = iota // /etc/elfhost/policy.toml
	User                     // policy.toml of the user's configuration
	Project                  // .elfhost/policy.toml: may only narrow
	Extra                    // the file that ELFHOST_POLICY names: may only narrow
)

func (k LayerKind) String() string {
	switch k {
	case System:
		return "system policy"
	case User:
		return "user policy"
	case Project:
		return "project policy"
	}
	return "ELFHOST_POLICY"
}

// Layer is one policy file. Its zero value limits nothing.
type Layer struct {
	Kind LayerKind
	File string

	DefaultDeny bool    // capabilities that Allow does not name are denied
	Allow       []Grant // ceilings: a capability named here is limited to these scopes
	Deny        []Grant // an empty Scope denies all of a capability

	Modes               []string // the modes that may be used; nil: all
	RestrictToWorkspace *bool
	RequireSandbox      bool
	DenyMultilink       bool // files with several hard links are not opened

	Tools    []Rule
	Limits   abi.Limits    // ceilings; zero fields set none
	ExecTime time.Duration // ceiling of one program's run; 0: none
	Network  Network
	// PrivateHosts are blocks of private addresses that hosts may have which a
	// person configured by name; of the system policy only. See Policy.Private.
	PrivateHosts []netip.Prefix

	Packages  packages.Rules // which may be installed and loaded; its Layer is set here
	PerPlugin []Grant        // ceilings of what any one plugin of others holds; an empty Scope: nothing

	Lines map[string]int // line of each key, such as "modes", for reasons
}

// Network is how the house reaches the outside. It holds for plugins, models,
// MCP and hubs alike. All but Off comes from the system policy only.
type Network struct {
	Off                   bool
	Proxy                 string // http://host:port; user-info is allowed here
	CAFile                string // PEM, added to the system's
	ClientCert, ClientKey string // PEM
	// Listen is an address, HOST:PORT, at which `mcp serve --http` may listen
	// although other machines reach it.
	Listen string
}

func (l *Layer) where(key string) string {
	if n := l.Lines[key]; n > 0 {
		return fmt.Sprintf("%s:%d", l.File, n)
	}
	return l.File
}

// Policy is the stack of ceilings. A nil or zero Policy limits nothing. It is
// immutable and safe for concurrent use.
type Policy struct {
	layers  []Layer
	ceiling Grants
	plugins Grants // the ceilings of plugins alone
	rules   []Rule
	notes   []string
}

var modes = []string{"plan", "ask", "acceptEdits", "auto"}

// NewPolicy checks the layers and stacks them, whatever their order. What a
// layer may not say is left out and reported by Notes; what it says wrongly is
// an error that names file and line.
func NewPolicy(layers ...Layer) (*Policy, error) {
	p := &Policy{layers: slices.Clone(layers), ceiling: Unlimited(), plugins: Unlimited()}
	slices.SortStableFunc(p.layers, func(a, b Layer) int { return int(a.Kind) - int(b.Kind) })
	var private []netip.Prefix // of the system's layer, which is the first
	for i := range p.layers {
		l := &p.layers[i]
		c, err := l.compile()
		if err != nil {
			return nil, err
		}
		if l.Kind == System {
			private = l.PrivateHosts
		}
		c.private(private, l.where("network.private"))
		p.ceiling = p.ceiling.Meet(Grants{[]layer{c}})
		if c, err = l.compilePlugins(c.name); err != nil {
			return nil, err
		}
		p.plugins = p.plugins.Meet(Grants{[]layer{c}})
		l.Packages.Layer = c.name
		for _, m := range l.Modes {
			if !slices.Contains(modes, m) {
				return nil, fmt.Errorf("%s: unknown mode %q (known: %s)", l.where("modes"), m, strings.Join(modes, ", "))
			}
		}
		p.narrow(l)
	}
	return p, nil
}

func (l *Layer) compile() (layer, error) {
	c := layer{name: "the " + l.Kind.String(), kind: kindCeiling, open: !l.DefaultDeny, closed: l.where("default")}
	if l.Kind == Extra {
		c.name = l.Kind.String()
	}
	var err error
	for _, part := range []struct {
		gs   []Grant
		deny bool
		out  *[]entry
	}{{l.Allow, false, &c.entries}, {l.Deny, true, &c.denies}} {
		for _, g := range part.gs {
			var es []entry
			if g.Where == "" {
				g.Where = l.File
			}
			if es, err = parseEntries([]Grant{g}, part.deny); err != nil {
				return c, fmt.Errorf("%s: %w", g.Where, err)
			}
			*part.out = append(*part.out, es...)
		}
	}
	if l.Network.Off {
		c.denies = append(c.denies, entry{abi.NetHTTP, allScope{}, l.where("network.off")})
	}
	return c, nil
}

// narrow drops what the layer's kind may not say (POL-02) and takes its rules.
func (p *Policy) narrow(l *Layer) {
	drop := func(key, who string) {
		p.notes = append(p.notes, fmt.Sprintf("%s: %s is ignored: only %s may set it", l.where(key), key, who))
	}
	if l.Kind != System {
		n := l.Network
		for _, f := range []struct{ key, v string }{{"network.proxy", n.Proxy}, {"network.ca_file", n.CAFile}, {"network.client_cert", n.ClientCert}, {"network.client_key", n.ClientKey}, {"network.listen", n.Listen}} {
			if f.v != "" {
				drop(f.key, "the system policy")
			}
		}
		if len(l.PrivateHosts) > 0 {
			drop("network.private", "the system policy")
			l.PrivateHosts = nil
		}
		l.Network = Network{Off: n.Off}
	}
	if r := l.RestrictToWorkspace; r != nil && !*r {
		system := slices.ContainsFunc(p.layers, func(o Layer) bool { return o.Kind == System })
		switch {
		case l.Kind == System || l.Kind == User && !system:
		case system:
			drop("restrict_to_workspace", "the system policy")
			l.RestrictToWorkspace = nil
		default:
			drop("restrict_to_workspace", "the user's policy")
			l.RestrictToWorkspace = nil
		}
	}
	for _, r := range l.Tools {
		if r.Where == "" {
			r.Where = l.File
		}
		if r.Layer == "" {
			r.Layer = l.Kind.String()
		}
		if r.Effect == Allow && l.Kind > User {
			p.notes = append(p.notes, fmt.Sprintf("%s: the tool rule %q is ignored: a %s may only narrow", r.Where, r.Pattern, l.Kind))
			continue
		}
		p.rules = append(p.rules, r)
	}
}

// Notes says what was ignored because the layer may not say it, with file and line.
func (p *Policy) Notes() []string {
	if p == nil {
		return nil
	}
	return slices.Clone(p.notes)
}

// Ceiling is what all layers allow at most. Its denials are final and carry
// the file and line that decided.
func (p *Policy) Ceiling() Grants {
	if p == nil || len(p.layers) == 0 {
		return Unlimited()
	}
	return p.ceiling
}

// Rules are the tool rules of all layers, for Judge.
func (p *Policy) Rules() []Rule {
	if p == nil {
		return nil
	}
	return slices.Clone(p.rules)
}
