package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// policyFile is policy.toml.
type policyFile struct {
	Default             string    `toml:"default"` // "allow" or "deny": capabilities that no [[allow]] names
	Modes               *[]string `toml:"modes"`
	RestrictToWorkspace *bool     `toml:"restrict_to_workspace"`
	RequireSandbox      bool      `toml:"require_sandbox"`
	DenyMultilink       bool      `toml:"deny_multilink"`
	ExecTime            Duration  `toml:"exec_time"`
	Allow               []capFile `toml:"allow"`
	Deny                []capFile `toml:"deny"`
	Tools               struct {
		Allow []string `toml:"allow"`
		Ask   []string `toml:"ask"`
		Deny  []string `toml:"deny"`
		Only  []string `toml:"only"`
	} `toml:"tools"`
	Limits  limitsFile `toml:"limits"`
	Network struct {
		Off        bool   `toml:"off"`
		Proxy      string `toml:"proxy"`
		CAFile     string `toml:"ca_file"`
		ClientCert string `toml:"client_cert"`
		ClientKey  string `toml:"client_key"`
	} `toml:"network"`
}

type capFile struct {
	Cap   string `toml:"cap"`
	Scope any    `toml:"scope"`
}

// ReadPolicy reads a policy.toml as one layer. file names it in errors and reasons.
func ReadPolicy(b []byte, kind policy.LayerKind, file string) (policy.Layer, error) {
	var f policyFile
	ls, err := decode(b, file, &f)
	if err != nil {
		return policy.Layer{}, err
	}
	l := policy.Layer{
		Kind: kind, File: file, RestrictToWorkspace: f.RestrictToWorkspace, RequireSandbox: f.RequireSandbox,
		DenyMultilink: f.DenyMultilink, ExecTime: f.ExecTime.Duration, Lines: ls,
		Network: policy.Network{Off: f.Network.Off, Proxy: f.Network.Proxy, CAFile: f.Network.CAFile, ClientCert: f.Network.ClientCert, ClientKey: f.Network.ClientKey},
	}
	switch f.Default {
	case "", "allow":
	case "deny":
		l.DefaultDeny = true
	default:
		return l, ls.fail(file, "default", `default is "allow" or "deny", not %q`, f.Default)
	}
	if f.Modes != nil {
		l.Modes = append([]string{}, *f.Modes...)
	}
	if l.Allow, err = ceilings(f.Allow, file, "allow", ls); err != nil {
		return l, err
	}
	if l.Deny, err = ceilings(f.Deny, file, "deny", ls); err != nil {
		return l, err
	}
	for _, set := range []struct {
		effect   policy.Effect
		patterns []string
	}{{policy.Deny, f.Tools.Deny}, {policy.Ask, f.Tools.Ask}, {policy.Only, f.Tools.Only}, {policy.Allow, f.Tools.Allow}} {
		rs, err := toolRules(set.patterns, set.effect, file, ls)
		if err != nil {
			return l, err
		}
		l.Tools = append(l.Tools, rs...)
	}
	if l.Limits, err = f.Limits.limits(file, ls); err != nil {
		return l, err
	}
	if err := checkNetwork(l.Network, file, ls); err != nil {
		return l, err
	}
	// The layer alone must stand, so that its errors name this file.
	_, err = policy.NewPolicy(l)
	return l, err
}

func ceilings(in []capFile, file, table string, ls lines) ([]policy.Grant, error) {
	var out []policy.Grant
	for i, c := range in {
		key := fmt.Sprintf("%s[%d]", table, i)
		scope, err := texts(c.Scope)
		if err != nil {
			return nil, ls.fail(file, key+".scope", "scope: %w", err)
		}
		if !abi.Capability(c.Cap).Known() {
			return nil, ls.fail(file, key, "unknown capability %q", c.Cap)
		}
		if len(scope) == 0 {
			if c.Scope != nil {
				return nil, ls.fail(file, key+".scope", "an empty scope says nothing; leave it out, or deny the capability")
			}
			out = append(out, policy.Grant{Cap: abi.Capability(c.Cap), Where: ls.where(file, key)})
		}
		for j, s := range scope {
			where := ls.where(file, fmt.Sprintf("%s.scope[%d]", key, j))
			if where == file {
				where = ls.where(file, key+".scope")
			}
			out = append(out, policy.Grant{Cap: abi.Capability(c.Cap), Scope: []string{s}, Where: where})
		}
	}
	return out, nil
}

func toolRules(patterns []string, effect policy.Effect, file string, ls lines) ([]policy.Rule, error) {
	var out []policy.Rule
	for i, text := range patterns {
		key := fmt.Sprintf("tools.%s[%d]", effect, i)
		p, err := policy.ParsePattern(text)
		if err != nil {
			return nil, ls.fail(file, key, "%w", err)
		}
		out = append(out, policy.Rule{Pattern: p, Effect: effect, Where: ls.where(file, key)})
	}
	return out, nil
}

func checkNetwork(n policy.Network, file string, ls lines) error {
	if n.Proxy != "" {
		u, err := url.Parse(n.Proxy)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" {
			return ls.fail(file, "network.proxy", "network.proxy is not a URL such as http://proxy.example:3128")
		}
	}
	for key, path := range map[string]string{"ca_file": n.CAFile, "client_cert": n.ClientCert, "client_key": n.ClientKey} {
		if path != "" && !filepath.IsAbs(path) {
			return ls.fail(file, "network."+key, "network.%s is not an absolute path: %q", key, path)
		}
	}
	if (n.ClientCert == "") != (n.ClientKey == "") {
		return ls.fail(file, "network", "network.client_cert and network.client_key go together")
	}
	return nil
}

// LoadPolicy reads the layers that exist: the system's, the user's, the
// project's (project may be ""), and the file that ELFHOST_POLICY names, which
// must exist. A file that cannot be read, or says anything wrongly, is an
// error: nothing starts without its policy.
func LoadPolicy(p Paths, project string) (*policy.Policy, error) {
	files := []struct {
		kind policy.LayerKind
		file string
	}{{policy.System, p.SystemPolicy}, {policy.User, p.UserPolicy()}, {policy.Extra, p.ExtraPolicy}}
	if project != "" {
		files = append(files, struct {
			kind policy.LayerKind
			file string
		}{policy.Project, ProjectPolicy(project)})
	}
	var layers []policy.Layer
	for _, f := range files {
		if f.file == "" {
			continue
		}
		b, present, err := readIfPresent(f.file)
		switch {
		case err != nil:
			return nil, fmt.Errorf("reading the %s: %w", f.kind, err)
		case !present && f.kind == policy.Extra:
			return nil, &Error{f.file, 0, errors.New("ELFHOST_POLICY names this file, which does not exist")}
		case !present:
			continue
		}
		l, err := ReadPolicy(b, f.kind, f.file)
		if err != nil {
			return nil, err
		}
		layers = append(layers, l)
	}
	return policy.NewPolicy(layers...)
}
