package schema

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clashes refuses keys that differ from a declared one, or from each other, by
// case alone: encoding/json would let them stand for each other, so that what
// was checked is not what is used. Objects that declare nothing may hold any
// keys (an environment has both http_proxy and HTTP_PROXY).
func (c *coercion) clashes(v any, alts []*node, at place, top bool) {
	if c.left <= 0 {
		c.refused = append(c.refused, "The value cannot be checked: it takes too much work.")
		return
	}
	switch v := v.(type) {
	case map[string]any:
		c.clashingKeys(v, alts, at, top)
		for key, e := range v {
			if child := memberOf(alts, key); child != nil && nests(e) {
				c.clashes(e, c.alternatives(child), at.key(key), false)
			}
		}
	case []any:
		for i, e := range v {
			if child := itemOf(alts, i); child != nil && nests(e) {
				c.clashes(e, c.alternatives(child), at.item(i), false)
			}
		}
	}
}

func nests(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func (c *coercion) clashingKeys(m map[string]any, alts []*node, at place, top bool) {
	exact := true
	for key := range m {
		exact = exact && declares(alts, key)
	}
	if exact {
		return // the rule: nothing to compare
	}
	declared := map[string]string{} // folded to exact
	for _, n := range alts {
		for name := range n.props {
			declared[fold(name)] = name
		}
	}
	if len(declared) == 0 && !top {
		return
	}
	seen := make(map[string]string, len(m))
	for _, key := range sortedKeys(m) {
		f := fold(key)
		if other, ok := seen[f]; ok {
			c.refused = append(c.refused, fmt.Sprintf("`%s` and `%s` differ by case alone; give one of them.",
				clip(at.key(other).String(), 80), clip(at.key(key).String(), 80)))
			continue
		}
		seen[f] = key
		if declares(alts, key) {
			continue
		}
		if want, ok := declared[f]; ok {
			c.refused = append(c.refused, fmt.Sprintf("There is no parameter `%s`; it is spelled `%s`.",
				clip(at.key(key).String(), 80), clip(want, 80)))
		}
	}
}

func declares(alts []*node, key string) bool {
	for _, n := range alts {
		if _, ok := n.props[key]; ok {
			return true
		}
	}
	return false
}

// fold maps letters that simple case folding makes equal to one of them, as
// encoding/json does when it looks for a field.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && r != 'k' && r != 'K' && r != 's' && r != 'S' {
			return unicode.ToLower(r)
		}
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return unicode.ToLower(least)
	}, s)
}
