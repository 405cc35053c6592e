package policy

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/elfhost/elfhost/abi"
)

// scope is one parsed scope of a grant.
type scope interface {
	// covers reports whether the use falls inside, by name.
	covers(p *use, k kind) bool
	// names reports whether the scope spells out what is sensitive of the use:
	// every protected name, or the special address.
	names(p *use) bool
	// touches is covers for a rule that denies: any doubt is a hit.
	touches(p *use) bool
	// text is the canonical form; parsing it gives an equal scope.
	text() string
}

// maxScope bounds the text of one scope.
const maxScope = 4 << 10

func parseScope(c abi.Capability, text string, deny bool) (scope, error) {
	text = strings.TrimSpace(text)
	switch {
	case len(text) > maxScope:
		return nil, errors.New("it is longer than 4 KiB")
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }):
		return nil, errors.New("it contains control characters")
	case deny && (text == "" || text == "*"):
		return allScope{}, nil
	}
	switch c {
	case abi.FSRead, abi.FSWrite:
		return parsePathScope(text)
	case abi.NetHTTP:
		return parseNetScope(text, deny)
	case abi.Exec:
		return parseExecScope(text)
	case abi.Env:
		return parseNameScope(text, isEnvName)
	case abi.ToolCall:
		return parseNameScope(text, isToolName)
	case abi.Secret:
		return parseSecretScope(text)
	case abi.KV:
		n, err := parseSize(text)
		return quota{n, formatSize}, err
	case abi.Model:
		n, err := parseTokens(text)
		return quota{n, formatTokens}, err
	case abi.ClockFine:
		if text != "" {
			return nil, errors.New("this capability has no scope")
		}
		return allScope{}, nil
	}
	return nil, fmt.Errorf("unknown capability %q", c)
}

func exampleScope(c abi.Capability) string {
	switch c {
	case abi.FSRead:
		return "/ws/**"
	case abi.FSWrite:
		return "/ws/out/**"
	case abi.NetHTTP:
		return "https://api.github.com GET,POST"
	case abi.Exec:
		return "git log *"
	case abi.Env:
		return "LANG"
	case abi.Secret:
		return "github-token@api.github.com"
	case abi.KV:
		return "1MiB"
	case abi.Model:
		return "100k tokens"
	case abi.ToolCall:
		return "Read"
	}
	return ""
}

// allScope is a capability without scopes, or a rule that denies all of one.
type allScope struct{}

func (allScope) covers(*use, kind) bool { return true }
func (allScope) names(*use) bool        { return false }
func (allScope) touches(*use) bool      { return true }
func (allScope) text() string           { return "" }

// nameScope is a name, or a stem followed by one '*'.
type nameScope struct {
	stem string
	open bool
}

func parseNameScope(text string, ok func(string) bool) (scope, error) {
	stem, open := strings.CutSuffix(text, "*")
	if stem == "" {
		return nil, errors.New("it must name something; a bare * is refused")
	}
	if !ok(stem) {
		return nil, errors.New("it is not a name, optionally ending in *")
	}
	return nameScope{stem, open}, nil
}

func (s nameScope) covers(p *use, _ kind) bool {
	return p.Target == s.stem || s.open && strings.HasPrefix(p.Target, s.stem)
}
func (s nameScope) names(*use) bool     { return false }
func (s nameScope) touches(p *use) bool { return s.covers(p, kindGrant) }
func (s nameScope) text() string {
	if s.open {
		return s.stem + "*"
	}
	return s.stem
}

func isEnvName(s string) bool {
	for i, r := range s {
		if r != '_' && !('A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || i > 0 && '0' <= r && r <= '9') {
			return false
		}
	}
	return true
}

func isToolName(s string) bool {
	return len(s) <= 256 && !strings.ContainsFunc(s, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./:", r)
	})
}

// secretScope is name@host: the host may be a pattern as in net.http.
type secretScope struct {
	name string
	host hostPattern
}

func parseSecretScope(text string) (scope, error) {
	name, host, ok := strings.Cut(text, "@")
	if !ok || name == "" || !isToolName(name) {
		return nil, errors.New("a secret's scope is name@host")
	}
	h, err := parseHostPattern(host)
	if err != nil {
		return nil, err
	}
	return secretScope{name, h}, nil
}

func (s secretScope) covers(p *use, _ kind) bool {
	name, host, _ := strings.Cut(p.Target, "@")
	return name == s.name && s.host.match(host)
}
func (s secretScope) names(*use) bool     { return false }
func (s secretScope) touches(p *use) bool { return s.covers(p, kindGrant) }
func (s secretScope) text() string        { return s.name + "@" + s.host.String() }

// quota is an amount: bytes of kv, tokens of model.
type quota struct {
	n      int64
	format func(int64) string
}

func (s quota) covers(p *use, _ kind) bool { return p.N <= s.n }
func (s quota) names(*use) bool            { return false }
func (s quota) touches(p *use) bool        { return p.N > s.n }
func (s quota) text() string               { return s.format(s.n) }

var sizeUnits = []struct {
	name string
	n    int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

func parseSize(text string) (int64, error) {
	for _, u := range sizeUnits {
		if num, ok := strings.CutSuffix(text, u.name); ok {
			return amount(num, u.n)
		}
	}
	return 0, errors.New("a size is a whole number with B, KiB, MiB or GiB")
}

func formatSize(n int64) string {
	for _, u := range sizeUnits {
		if n >= u.n && n%u.n == 0 {
			return strconv.FormatInt(n/u.n, 10) + u.name
		}
	}
	return "0B"
}

func parseTokens(text string) (int64, error) {
	num, ok := strings.CutSuffix(text, "tokens")
	if !ok {
		return 0, errors.New(`a budget is written like "100k tokens"`)
	}
	num = strings.TrimSpace(num)
	for _, u := range []struct {
		s string
		n int64
	}{{"k", 1_000}, {"M", 1_000_000}} {
		if n, ok := strings.CutSuffix(num, u.s); ok {
			return amount(n, u.n)
		}
	}
	return amount(num, 1)
}

func formatTokens(n int64) string {
	switch {
	case n > 0 && n%1_000_000 == 0:
		return fmt.Sprintf("%dM tokens", n/1_000_000)
	case n > 0 && n%1_000 == 0:
		return fmt.Sprintf("%dk tokens", n/1_000)
	}
	return fmt.Sprintf("%d tokens", n)
}

func amount(num string, unit int64) (int64, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(num), 10, 63)
	if err != nil || int64(n) > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is not a whole number in range", num)
	}
	return int64(n) * unit, nil
}
