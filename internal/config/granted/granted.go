package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/pelletier/go-toml/v2"
)

// PluginKey says to which plugin a grant belongs. All four must agree, so
// that a grant cannot be replayed for other code of the same name (POL-08).
type PluginKey struct {
	Publisher string `toml:"publisher"`
	Name      string `toml:"plugin"`
	Digest    string `toml:"digest"` // sha256 of the wasm
	Needs     string `toml:"needs"`  // NeedsHash of the manifest
}

// NeedsHash is a digest of what a manifest asks for. Order, and reasons, do
// not count.
func NeedsHash(needs []abi.Need) string {
	var all []string
	for _, n := range needs {
		scope := slices.Clone(n.Scope)
		slices.Sort(scope)
		b, _ := json.Marshal(append([]string{string(n.Cap)}, slices.Compact(scope)...)) // strings always marshal
		all = append(all, string(b))
	}
	slices.Sort(all)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(all), "\n")))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// PluginGrant is one remembered grant of a plugin.
type PluginGrant struct {
	PluginKey
	Cap   abi.Capability
	Scope []string
	Given time.Time
	Where string // file:line; set when read
}

// Grant is what is given, without to whom.
func (g PluginGrant) Grant() policy.Grant {
	return policy.Grant{Cap: g.Cap, Scope: g.Scope, Where: g.Where}
}

// Granted is the content of a grants.toml.
type Granted struct {
	Grants  []PluginGrant
	Revoked []PluginGrant // grants of the installation's own that a person took back
	Rules   []Answer      // remembered answers
}

// For returns what is granted to exactly this plugin.
func (g Granted) For(k PluginKey) []policy.Grant {
	var out []policy.Grant
	for _, x := range g.Grants {
		if x.PluginKey == k {
			out = append(out, x.Grant())
		}
	}
	return out
}

// Held returns grants of the same publisher and name for other code or other
// needs: an update for which a person has not agreed yet.
func (g Granted) Held(k PluginKey) []PluginGrant {
	var out []PluginGrant
	for _, x := range g.Grants {
		if x.Publisher == k.Publisher && x.Name == k.Name && x.PluginKey != k {
			out = append(out, x)
		}
	}
	return out
}

// Add remembers a grant, once. A revocation of the same grant is lifted.
func (g *Granted) Add(k PluginKey, gr policy.Grant) {
	for _, text := range strings.Split(gr.String(), "\n") {
		one, err := policy.ParseGrant(text)
		if err != nil {
			continue // checked by Update before it writes
		}
		g.Revoked = slices.DeleteFunc(g.Revoked, func(x PluginGrant) bool { return x.PluginKey == k && x.Grant().String() == one.String() })
		if !slices.ContainsFunc(g.Grants, func(x PluginGrant) bool { return x.PluginKey == k && x.Grant().String() == one.String() }) {
			g.Grants = append(g.Grants, PluginGrant{PluginKey: k, Cap: one.Cap, Scope: one.Scope, Given: time.Now().UTC().Truncate(time.Second)})
		}
	}
}

// Revoke removes the grants of a plugin, of any digest, that match: all of
// them when gr is zero. It returns what was removed.
func (g *Granted) Revoke(publisher, name string, gr policy.Grant) []PluginGrant {
	var out []PluginGrant
	g.Grants = slices.DeleteFunc(g.Grants, func(x PluginGrant) bool {
		hit := x.Name == name && x.Publisher == publisher && (gr.Cap == "" || x.Cap == gr.Cap && (len(gr.Scope) == 0 || slices.Equal(x.Scope, gr.Scope)))
		if hit {
			out = append(out, x)
		}
		return hit
	})
	return out
}

// Answer is a remembered answer about calls. Plugin says whose tool its
// pattern names; "" is for builtin and MCP tools.
type Answer struct {
	policy.Rule
	Plugin string
}

// String is how `elfhost grant` takes and shows the answer.
func (a Answer) String() string {
	if a.Plugin == "" {
		return a.Pattern.String()
	}
	return a.Plugin + " " + a.Pattern.String()
}

// AddRule remembers an answer, once; it replaces one with the same pattern.
func (g *Granted) AddRule(r Answer) {
	g.Rules = slices.DeleteFunc(g.Rules, func(x Answer) bool { return x.String() == r.String() })
	g.Rules = append(g.Rules, r)
}

// grantsFile is grants.toml.
type grantsFile struct {
	Grant  []grantFile `toml:"grant,omitempty"`
	Revoke []grantFile `toml:"revoke,omitempty"`
	Rule   []ruleFile  `toml:"rule,omitempty"`
}

type grantFile struct {
	Publisher string    `toml:"publisher"`
	Plugin    string    `toml:"plugin"`
	Digest    string    `toml:"digest"`
	Needs     string    `toml:"needs"`
	Cap       string    `toml:"cap"`
	Scope     []string  `toml:"scope,omitempty"`
	Given     time.Time `toml:"given,omitempty"`
}

type ruleFile struct {
	Plugin  string `toml:"plugin,omitempty"`
	Pattern string `toml:"pattern"`
	Effect  string `toml:"effect"`
}

// ReadGrants reads a grants.toml; a file that is missing holds nothing. layer
// is the layer of its rules: "user", "project".
func ReadGrants(file, layer string) (Granted, error) {
	b, present, err := readIfPresent(file)
	if err != nil || !present {
		return Granted{}, err
	}
	var f grantsFile
	ls, err := decode(b, file, &f)
	if err != nil {
		return Granted{}, err
	}
	var out Granted
	if out.Grants, err = pluginGrants(f.Grant, file, "grant", ls); err != nil {
		return Granted{}, err
	}
	if out.Revoked, err = pluginGrants(f.Revoke, file, "revoke", ls); err != nil {
		return Granted{}, err
	}
	for i, r := range f.Rule {
		key := fmt.Sprintf("rule[%d]", i)
		p, err := policy.ParsePattern(r.Pattern)
		if err != nil {
			return Granted{}, ls.fail(file, key, "%w", err)
		}
		e := policy.Effect(r.Effect)
		if e != policy.Allow && e != policy.Deny && e != policy.Ask {
			return Granted{}, ls.fail(file, key, "effect is allow, ask or deny, not %q", r.Effect)
		}
		out.Rules = append(out.Rules, Answer{policy.Rule{Pattern: p, Effect: e, Layer: layer, Where: ls.where(file, key)}, r.Plugin})
	}
	return out, nil
}

func pluginGrants(in []grantFile, file, table string, ls lines) ([]PluginGrant, error) {
	var out []PluginGrant
	for i, x := range in {
		key := fmt.Sprintf("%s[%d]", table, i)
		g := PluginGrant{PluginKey: PluginKey{x.Publisher, x.Plugin, x.Digest, x.Needs}, Cap: abi.Capability(x.Cap), Scope: x.Scope, Given: x.Given, Where: ls.where(file, key)}
		if g.Name == "" {
			return nil, ls.fail(file, key, "a grant names no plugin")
		}
		if _, err := policy.New("grants", g.Grant()); err != nil {
			return nil, ls.fail(file, key, "%w", err)
		}
		out = append(out, g)
	}
	return out, nil
}

const grantsHead = "# Written by elfhost: what was granted, to whom, and answers to remember.\n# See `elfhost grant list`; `elfhost grant revoke` takes back.\n\n"

// UpdateGrants changes a grants.toml: it locks the file against other
// processes, reads it, lets change edit it, and replaces it whole. Where
// change, or anything else, fails, the file is as before.
func UpdateGrants(file, layer string, change func(*Granted) error) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("making the folder of %q: %w", file, err)
	}
	unlock, err := lock(file + ".lock")
	if err != nil {
		return fmt.Errorf("locking %q: %w", file, err)
	}
	defer unlock()
	g, err := ReadGrants(file, layer)
	if err != nil {
		return err
	}
	if err := change(&g); err != nil {
		return err
	}
	b, err := g.encode()
	if err != nil {
		return fmt.Errorf("writing %q: %w", file, err)
	}
	return writeFile(file, b)
}

func (g Granted) encode() ([]byte, error) {
	var f grantsFile
	put := func(in []PluginGrant) (out []grantFile, err error) {
		for _, x := range in {
			if _, err := policy.New("grants", x.Grant()); err != nil {
				return nil, err
			}
			out = append(out, grantFile{x.Publisher, x.Name, x.Digest, x.Needs, string(x.Cap), x.Scope, x.Given})
		}
		return out, nil
	}
	var err error
	if f.Grant, err = put(g.Grants); err != nil {
		return nil, err
	}
	if f.Revoke, err = put(g.Revoked); err != nil {
		return nil, err
	}
	for _, r := range g.Rules {
		if r.Effect != policy.Allow && r.Effect != policy.Deny && r.Effect != policy.Ask {
			return nil, fmt.Errorf("a remembered answer cannot be %q", r.Effect)
		}
		f.Rule = append(f.Rule, ruleFile{r.Plugin, r.Pattern.String(), string(r.Effect)})
	}
	var b bytes.Buffer
	b.WriteString(grantsHead)
	if err := toml.NewEncoder(&b).Encode(f); err != nil {
		return nil, err
	}
	if b.Len() > MaxFile {
		return nil, errors.New("there are too many grants; revoke some")
	}
	return b.Bytes(), nil
}
