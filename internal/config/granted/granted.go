// Package granted keeps grants.toml: what persons granted to which plugin, and
// the answers to remember.
package granted

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/config/strict"
	"github.com/pelletier/go-toml/v2"
)

// Key says to which plugin a grant belongs. All four must agree, so
// that a grant cannot be replayed for other code of the same name (POL-08).
type Key struct {
	Publisher string `toml:"publisher"`
	Name      string `toml:"plugin"`
	Digest    string `toml:"digest"` // sha256 of the wasm
	Needs     string `toml:"needs"`  // manifest.NeedsHash
}

// Grant is one remembered grant of a plugin.
type Grant struct {
	Key
	Cap   abi.Capability
	Scope []string
	Given time.Time
	Where string // file:line; set when read
}

// Grant is what is given, without to whom.
func (g Grant) Grant() policy.Grant {
	return policy.Grant{Cap: g.Cap, Scope: g.Scope, Where: g.Where}
}

// File is the content of a grants.toml.
type File struct {
	Grants  []Grant
	Revoked []Grant  // grants of the installation's own that a person took back
	Rules   []Answer // remembered answers
}

// For returns what is granted to exactly this plugin.
func (g File) For(k Key) []policy.Grant {
	var out []policy.Grant
	for _, x := range g.Grants {
		if x.Key == k {
			out = append(out, x.Grant())
		}
	}
	return out
}

// Held returns grants of the same publisher and name for other code or other
// needs: an update for which a person has not agreed yet.
func (g File) Held(k Key) []Grant {
	var out []Grant
	for _, x := range g.Grants {
		if x.Publisher == k.Publisher && x.Name == k.Name && x.Key != k {
			out = append(out, x)
		}
	}
	return out
}

// Add remembers a grant, once. A revocation of the same grant is lifted.
func (g *File) Add(k Key, gr policy.Grant) {
	for _, text := range strings.Split(gr.String(), "\n") {
		one, err := policy.ParseGrant(text)
		if err != nil {
			continue // checked by Update before it writes
		}
		g.Revoked = slices.DeleteFunc(g.Revoked, func(x Grant) bool { return x.Key == k && x.Grant().String() == one.String() })
		if !slices.ContainsFunc(g.Grants, func(x Grant) bool { return x.Key == k && x.Grant().String() == one.String() }) {
			g.Grants = append(g.Grants, Grant{Key: k, Cap: one.Cap, Scope: one.Scope, Given: time.Now().UTC().Truncate(time.Second)})
		}
	}
}

// Revoke removes the grants of a plugin, of any digest, that match: all of
// them when gr is zero. It returns what was removed.
func (g *File) Revoke(publisher, name string, gr policy.Grant) []Grant {
	var out []Grant
	g.Grants = slices.DeleteFunc(g.Grants, func(x Grant) bool {
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
func (g *File) AddRule(r Answer) {
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

// Read reads a grants.toml; a file that is missing holds nothing. layer
// is the layer of its rules: "user", "project".
func Read(file, layer string) (File, error) {
	b, present, err := strict.ReadIfPresent(file)
	if err != nil || !present {
		return File{}, err
	}
	var f grantsFile
	ls, err := strict.Decode(b, file, &f)
	if err != nil {
		return File{}, err
	}
	var out File
	if out.Grants, err = pluginGrants(f.Grant, file, "grant", ls); err != nil {
		return File{}, err
	}
	if out.Revoked, err = pluginGrants(f.Revoke, file, "revoke", ls); err != nil {
		return File{}, err
	}
	for i, r := range f.Rule {
		key := fmt.Sprintf("rule[%d]", i)
		p, err := policy.ParsePattern(r.Pattern)
		if err != nil {
			return File{}, ls.Fail(file, key, "%w", err)
		}
		e := policy.Effect(r.Effect)
		if e != policy.Allow && e != policy.Deny && e != policy.Ask {
			return File{}, ls.Fail(file, key, "effect is allow, ask or deny, not %q", r.Effect)
		}
		out.Rules = append(out.Rules, Answer{policy.Rule{Pattern: p, Effect: e, Layer: layer, Where: ls.Where(file, key)}, r.Plugin})
	}
	return out, nil
}

func pluginGrants(in []grantFile, file, table string, ls strict.Lines) ([]Grant, error) {
	var out []Grant
	for i, x := range in {
		key := fmt.Sprintf("%s[%d]", table, i)
		g := Grant{Key: Key{x.Publisher, x.Plugin, x.Digest, x.Needs}, Cap: abi.Capability(x.Cap), Scope: x.Scope, Given: x.Given, Where: ls.Where(file, key)}
		if g.Name == "" {
			return nil, ls.Fail(file, key, "a grant names no plugin")
		}
		if _, err := policy.New("grants", g.Grant()); err != nil {
			return nil, ls.Fail(file, key, "%w", err)
		}
		out = append(out, g)
	}
	return out, nil
}

const grantsHead = "# Written by elfhost: what was granted, to whom, and answers to remember.\n# See `elfhost grant list`; `elfhost grant revoke` takes back.\n\n"

// Update changes a grants.toml: it locks the file against other
// processes, reads it, lets change edit it, and replaces it whole. Where
// change, or anything else, fails, the file is as before.
func Update(file, layer string, change func(*File) error) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("making the folder of %q: %w", file, err)
	}
	unlock, err := strict.Lock(file + ".lock")
	if err != nil {
		return fmt.Errorf("locking %q: %w", file, err)
	}
	defer unlock()
	g, err := Read(file, layer)
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
	return strict.WriteFile(file, b)
}

func (g File) encode() ([]byte, error) {
	var f grantsFile
	put := func(in []Grant) (out []grantFile, err error) {
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
	if b.Len() > strict.MaxFile {
		return nil, errors.New("there are too many grants; revoke some")
	}
	return b.Bytes(), nil
}
