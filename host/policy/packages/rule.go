package packages

import (
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// Kind is which fact a rule is about.
type Kind int

// The kinds of rules, in the order in which they are asked.
const (
	Name      Kind = iota // "fetch", "corp-*", "fetch >=1.2, <2", "sha256:…"
	Publisher             // "corp", "corp-*"
	Key                   // "RWQ…", or "corp RWQ…": the key counts for that publisher alone
	Hub                   // "https://hub.example.com", "oci://registry.example.com/tools", "file:///srv/hub"
)

// Rule is one entry of a list.
type Rule struct {
	Kind  Kind
	Deny  bool
	Where string // "file:line"

	text    string
	glob    string // of the name, or of the publisher
	version *semver.Constraints
	digest  string
	key     string
	place   place
}

// maxRule bounds the text of one rule, in bytes.
const maxRule = 512

var (
	globForm   = regexp.MustCompile(`^[a-z0-9*][a-z0-9*-]{0,63}$`)
	digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// ParseRule reads one entry of a list. Where a rule denies, what it leaves in
// doubt is a hit; where it allows, it is none.
func ParseRule(kind Kind, deny bool, text, where string) (Rule, error) {
	r := Rule{Kind: kind, Deny: deny, Where: where, text: strings.TrimSpace(text)}
	if r.text == "" || len(r.text) > maxRule {
		return r, fmt.Errorf("a rule has 1 to %d bytes", maxRule)
	}
	var err error
	switch kind {
	case Name:
		err = r.parseName()
	case Publisher:
		r.glob, err = r.text, checkGlob("publisher", r.text)
	case Key:
		err = r.parseKey()
	case Hub:
		r.place, err = parsePlace(r.text, true)
	}
	return r, err
}

func checkGlob(what, text string) error {
	if !globForm.MatchString(text) {
		return fmt.Errorf("%q is not a %s: lower-case letters, digits and '-', with '*' for any of them", text, what)
	}
	return nil
}

func (r *Rule) parseName() error {
	if strings.HasPrefix(r.text, "sha256:") {
		if !digestForm.MatchString(r.text) {
			return fmt.Errorf("%q is not a digest: sha256: and 64 hexadecimal digits in lower case", r.text)
		}
		r.digest = r.text
		return nil
	}
	name, versions, ok := strings.Cut(r.text, " ")
	r.glob = name
	if err := checkGlob("package's name", name); err != nil || !ok {
		return err
	}
	c, err := semver.NewConstraint(strings.TrimSpace(versions))
	if err != nil {
		return fmt.Errorf("%q is not a range of versions, such as \">=1.2, <2\": %w", versions, err)
	}
	// A list of what is allowed means releases, unless the range names a
	// pre-release; 1.2.2-rc1 must not slip past "<1.2.3" in one of what is not.
	c.IncludePrerelease = r.Deny
	r.version = c
	return nil
}

// keySize is that of a minisign public key: algorithm, key number, Ed25519.
const keySize = 2 + 8 + 32

func (r *Rule) parseKey() error {
	f := strings.Fields(r.text)
	r.key = f[len(f)-1]
	switch {
	case len(f) > 2:
		return errors.New(`a key is written as "RWQ…", or with its publisher as "NAME RWQ…"`)
	case len(f) == 2:
		r.glob = f[0]
		if err := checkGlob("publisher", r.glob); err != nil {
			return err
		}
	}
	b, err := base64.StdEncoding.Strict().DecodeString(r.key)
	if err != nil || len(b) != keySize || string(b[:2]) != "Ed" {
		// A key's short number can be chosen by whoever makes the key.
		return fmt.Errorf("%q is not a minisign public key: its 56 letters, not its number", r.key)
	}
	return nil
}

// names reports whether a glob matches; in doubt it matches what is denied.
func (r *Rule) names(s string) bool {
	if r.Deny {
		s = strings.ToLower(s)
	}
	ok, err := path.Match(r.glob, s)
	return ok && err == nil
}

// hits reports whether the rule is about a package with these facts.
func (r *Rule) hits(f *Facts) bool {
	switch r.Kind {
	case Name:
		if r.digest != "" {
			return r.digest == f.Digest
		}
		return r.names(f.Name) && r.inRange(f.Version)
	case Publisher:
		return r.names(f.Publisher) && (r.Deny || f.Key != "")
	case Key:
		return f.Key == r.key && (r.glob == "" || r.names(f.Publisher))
	}
	p, err := parsePlace(f.Hub, false)
	if err != nil {
		return r.Deny
	}
	return r.place.holds(p)
}

func (r *Rule) inRange(version string) bool {
	if r.version == nil {
		return true
	}
	v, err := semver.StrictNewVersion(version)
	if err != nil {
		return r.Deny
	}
	return r.version.Check(v)
}

// unknown reports whether the rule asks for a fact that is not known.
func (r *Rule) unknown(f *Facts) bool {
	if !f.Partial {
		return false
	}
	switch r.Kind {
	case Name:
		if r.digest != "" {
			return f.Digest == ""
		}
		return f.Name == "" || r.version != nil && f.Version == "" && r.names(f.Name)
	case Publisher:
		return f.Publisher == "" || f.Key == "" && !r.Deny
	case Key:
		return f.Key == ""
	}
	return f.Hub == ""
}
