package ironclaw

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// ManifestFile is the name of an extension's manifest.
const ManifestFile = "manifest.toml"

// Manifest is the part of an extension's manifest (schema version 3) that says
// what its Wasm tools are and may do.
type Manifest struct {
	Schema      any    `toml:"schema_version"`
	ID          string `toml:"id"`
	Version     string `toml:"version"`
	Description string `toml:"description"`
	Runtime     struct {
		Kind   string `toml:"kind"`
		Module string `toml:"module"`
	} `toml:"runtime"`
	Tools []Decl `toml:"tools"`
}

// Decl is one tool of a manifest.
type Decl struct {
	ID          string       `toml:"id"` // "github.get_repo"
	Description string       `toml:"description"`
	Effects     []string     `toml:"effects"`
	Visibility  string       `toml:"visibility"`
	InputRef    string       `toml:"input_schema_ref"`
	Targets     []Target     `toml:"network_targets"`
	Credentials []Credential `toml:"credentials"`
}

// Target is a place that a tool may reach.
type Target struct {
	Scheme string `toml:"scheme"`
	Host   string `toml:"host"`
	Port   int    `toml:"port"`
	// Pattern takes the place of Host in network_targets: "*.example.org".
	Pattern string `toml:"host_pattern"`
}

func (t Target) host() string {
	if t.Host == "" {
		return t.Pattern
	}
	return t.Host
}

// Credential says which secret the host puts into which requests, and where.
type Credential struct {
	Handle    string `toml:"handle"` // the secret's name
	Vendor    string `toml:"vendor"`
	Audience  Target `toml:"audience"`
	Injection struct {
		Type        string `toml:"type"` // "header", "query", "path"
		Name        string `toml:"name"`
		Prefix      string `toml:"prefix"`
		Placeholder string `toml:"placeholder"`
	} `toml:"injection"`
	Required *bool `toml:"required"`
}

// required: unless the manifest says otherwise.
func (c Credential) required() bool { return c.Required == nil || *c.Required }

// maxTools is the most that a plugin may have.
const maxTools = 128

// ParseManifest reads a manifest. What it has beyond Wasm tools is ignored:
// those parts need IronClaw itself.
func ParseManifest(b []byte) (*Manifest, error) {
	var m Manifest
	if err := toml.Unmarshal(b, &m); err != nil {
		return nil, err
	}
	if s := fmt.Sprint(m.Schema); s != "3" && !strings.HasSuffix(s, ".v3") {
		return nil, fmt.Errorf("its schema_version is %q, and this host knows 3", clip(s))
	}
	if m.Runtime.Kind != "wasm" || m.Runtime.Module == "" {
		return nil, fmt.Errorf("its runtime is %q: only Wasm extensions run here", clip(m.Runtime.Kind))
	}
	shown := m.Tools[:0:0]
	seen := map[string]bool{}
	for _, d := range m.Tools {
		if d.Visibility == "" || d.Visibility == "model" {
			shown = append(shown, d)
		}
		if seen[d.Name()] {
			return nil, fmt.Errorf("two tools have the name %q", clip(d.Name()))
		}
		seen[d.Name()] = true
	}
	if m.Tools = shown; len(m.Tools) > maxTools {
		return nil, fmt.Errorf("it has %d tools; the limit is %d", len(m.Tools), maxTools)
	}
	return &m, nil
}

// Name is the tool's name as the model sees it.
func (d Decl) Name() string {
	s := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, d.ID)
	return s[:min(len(s), 64)]
}

// Declarations are the tools. schema reads a file of the extension.
func (m *Manifest) Declarations(schema func(ref string) ([]byte, error)) ([]abi.ToolDecl, error) {
	var out []abi.ToolDecl
	for _, d := range m.Tools {
		decl := abi.ToolDecl{Name: d.Name(), Description: d.Description, Input: json.RawMessage(`{"type":"object"}`)}
		if d.InputRef != "" {
			b, err := schema(d.InputRef)
			if err != nil {
				return nil, fmt.Errorf("the schema of the tool %q: %w", d.ID, err)
			}
			decl.Input = b
		}
		out = append(out, decl)
	}
	return out, nil
}

const methods = " GET,HEAD,POST,PUT,PATCH,DELETE"

// Needs are what the manifest's tools ask for together.
func (m *Manifest) Needs() ([]abi.Need, error) {
	var hosts, secrets []string
	files := false
	for _, d := range m.Tools {
		targets := slices.Clone(d.Targets)
		for _, c := range d.Credentials {
			targets = append(targets, c.Audience)
			secrets = append(secrets, c.Handle+"@"+c.Audience.host())
		}
		for _, t := range targets {
			hosts = append(hosts, t.scope()+methods)
		}
		files = files || slices.ContainsFunc(d.Effects, func(e string) bool { return strings.Contains(e, "filesystem") || strings.Contains(e, "workspace") })
	}
	var needs []abi.Need
	add := func(c abi.Capability, scope []string, why string) {
		if len(scope) > 0 {
			slices.Sort(scope)
			needs = append(needs, abi.Need{Cap: c, Scope: slices.Compact(scope), Reason: why})
		}
	}
	add(abi.NetHTTP, hosts, "its manifest names these hosts")
	add(abi.Secret, secrets, "its manifest has them put into requests to these hosts")
	if files {
		add(abi.FSRead, []string{"/ws/**"}, "its tools read the workspace")
	}
	_, err := policy.FromNeeds(needs)
	return needs, err
}

func (t Target) scope() string {
	scheme := t.Scheme
	if scheme == "" {
		scheme = "https"
	}
	if t.Port != 0 {
		return scheme + "://" + net.JoinHostPort(t.host(), fmt.Sprint(t.Port))
	}
	return scheme + "://" + t.host()
}
