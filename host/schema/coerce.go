package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxNotes is how many repairs are told one by one.
const maxNotes = 10

// maxCoerceWork bounds the subschemas looked at while one value is repaired.
const maxCoerceWork = 1_000_000

func parseValue(raw []byte) (any, error) {
	if len(raw) > MaxValueSize {
		return nil, problem("The value is %d bytes, over the limit of %d.", len(raw), MaxValueSize)
	}
	v, err := parse(raw, MaxValueDepth)
	if err != nil {
		return nil, &Invalid{Err: err}
	}
	return v, nil
}

func (s *Schema) coerce(args json.RawMessage) (any, json.RawMessage, []string, error) {
	if len(args) > MaxValueSize {
		return nil, nil, nil, problem("The arguments are %d bytes, over the limit of %d.", len(args), MaxValueSize)
	}
	c := coercion{left: maxCoerceWork}
	v, err := c.read(args, s.doc.top)
	if err != nil {
		return nil, nil, nil, err
	}
	v = c.value(v, s.doc.top, nil)
	c.clashes(v, alternativesOf(s.doc.top), nil, true)
	if len(c.refused) > 0 {
		slices.Sort(c.refused)
		return nil, nil, nil, &Invalid{Problems: c.refused}
	}
	if !c.changed {
		return v, args, nil, nil
	}
	out, err := encode(v)
	return v, out, c.told(), err
}

// coercion repairs one value.
type coercion struct {
	changed bool
	notes   []string
	refused []string
	left    int
}

// read parses the arguments; none at all, or null, are an empty object where
// an object is expected.
func (c *coercion) read(args []byte, top *node) (any, error) {
	args = bytes.Trim(args, " \t\r\n")
	if len(args) == 0 {
		c.changed = true
		return map[string]any{}, nil
	}
	p := parser{s: args, max: MaxValueDepth}
	v, err := p.document()
	if err != nil {
		return nil, &Invalid{Err: err}
	}
	c.changed = p.mangled
	if top.types&tObject != 0 && (v == nil && top.types&tNull == 0 || v == "" && top.types&tString == 0) {
		c.changed = true
		return map[string]any{}, nil
	}
	return v, nil
}

func (c *coercion) note(at place, format string, args ...any) {
	c.changed = true
	name := at.String()
	if name == "" {
		name = "the arguments"
	} else {
		name = "`" + clip(name, 80) + "`"
	}
	c.notes = append(c.notes, name+" "+fmt.Sprintf(format, args...))
}

func (c *coercion) told() []string {
	if len(c.notes) <= maxNotes {
		return c.notes
	}
	return append(c.notes[:maxNotes:maxNotes], fmt.Sprintf("%d more values were converted", len(c.notes)-maxNotes))
}

// value repairs v for the schema n and what lies in it.
func (c *coercion) value(v any, n *node, at place) any {
	if n == nil || c.left <= 0 {
		return v
	}
	c.left--
	v = c.convert(v, n, at)
	switch v := v.(type) {
	case map[string]any:
		c.object(v, n, at)
	case []any:
		alts := c.alternatives(n)
		for i := range v {
			v[i] = c.value(v[i], itemOf(alts, i), at.item(i))
		}
	case json.Number:
		if n.types&tInteger != 0 && n.types&tFraction == 0 {
			if plain, ok := integer(string(v)); ok && plain != string(v) {
				c.changed = true // 1e3 and 3.0 are integers, but few decoders take them
				return json.Number(plain)
			}
		}
	}
	return v
}

// convert changes the type of v if n does not accept it and another reading
// of it fits.
func (c *coercion) convert(v any, n *node, at place) any {
	if n.types&typeOf(v) != 0 || n.types == 0 {
		return v
	}
	if s, ok := v.(string); ok {
		if read, what, ok := fromString(s, n.types); ok {
			c.note(at, "was the string %s and was read as %s", quoted(s), what)
			return read
		}
	}
	if n.types&tArray != 0 && v != nil {
		to := itemOf(c.alternatives(n), 0)
		item := c.value(v, to, at.item(0))
		if to == nil && typeOf(v) == tObject || to != nil && to.types&typeOf(item) == 0 {
			return v // an object is wrapped only where objects are known to be listed
		}
		c.note(at, "was one value and was read as an array of one element")
		return []any{item}
	}
	return v
}

// fromString reads a string as one of the types.
func fromString(s string, want types) (v any, what string, ok bool) {
	t := strings.TrimSpace(s)
	switch {
	case want&(tInteger|tFraction) != 0 && t != "" && (t[0] == '-' || '0' <= t[0] && t[0] <= '9' || t[0] == '+'):
		v, err := parse([]byte(strings.TrimPrefix(t, "+")), 1)
		num, isNum := v.(json.Number)
		if err != nil || !isNum {
			return nil, "", false
		}
		if want&tFraction == 0 {
			plain, whole := integer(string(num))
			if !whole {
				return nil, "", false
			}
			num = json.Number(plain)
		}
		return num, "the number " + clip(string(num), 40), true
	case want&tBool != 0 && (strings.EqualFold(t, "true") || strings.EqualFold(t, "false")):
		b := strings.EqualFold(t, "true")
		return b, "the boolean " + strconv.FormatBool(b), true
	case want&tArray != 0 && strings.HasPrefix(t, "["), want&tObject != 0 && strings.HasPrefix(t, "{"):
		v, err := parse([]byte(t), MaxValueDepth)
		if err != nil {
			return nil, "", false
		}
		return v, map[bool]string{true: "the JSON array in it", false: "the JSON object in it"}[t[0] == '['], true
	}
	return nil, "", false
}

func quoted(s string) string { return strconv.Quote(clip(s, 40)) }

// object repairs the members of an object: null for what is optional goes.
func (c *coercion) object(m map[string]any, n *node, at place) {
	alts := c.alternatives(n)
	for _, key := range sortedKeys(m) {
		child := memberOf(alts, key)
		if child == nil {
			continue
		}
		if m[key] == nil && child.types&tNull == 0 && !requires(alts, key) {
			delete(m, key)
			c.note(at.key(key), "was null and was left out, because it is optional")
			continue
		}
		m[key] = c.value(m[key], child, at.key(key))
	}
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (c *coercion) alternatives(n *node) []*node {
	alts := alternativesOf(n)
	c.left -= len(alts)
	return alts
}

// alternativesOf lists n and what applies in place, branches included. It is
// bounded by MaxExpansion.
func alternativesOf(n *node) []*node {
	if len(n.same) == 0 && len(n.either) == 0 {
		return []*node{n}
	}
	seen := map[*node]bool{n: true}
	out := []*node{n}
	add := func(list []*node) {
		for _, c := range list {
			if !seen[c] {
				seen[c] = true
				out = append(out, c)
			}
		}
	}
	for i := 0; i < len(out); i++ {
		add(out[i].same)
		for _, alt := range out[i].either {
			add(alt)
		}
	}
	return out
}

// union is one node for several schemas of the same value, of which any may
// be the one that counts. Nil: nothing is known about the value.
func union(nodes []*node) *node {
	switch len(nodes) {
	case 0:
		return nil
	case 1:
		return nodes[0]
	}
	u := &node{either: [][]*node{nodes}}
	for _, n := range nodes {
		u.types |= n.types
	}
	return u
}

// memberOf finds the schemas that say something about a key.
func memberOf(alts []*node, key string) *node {
	var found []*node
	for _, n := range alts {
		own := len(found)
		if p := n.props[key]; p != nil {
			found = append(found, p)
		}
		for _, p := range n.patterns {
			if p.re.MatchString(key) {
				found = append(found, p.node)
			}
		}
		if len(found) == own && n.rest != nil && !n.closed {
			found = append(found, n.rest)
		}
	}
	return union(found)
}

func itemOf(alts []*node, i int) *node {
	var found []*node
	for _, n := range alts {
		if i < len(n.prefix) {
			found = append(found, n.prefix[i])
		} else if n.items != nil {
			found = append(found, n.items)
		}
	}
	return union(found)
}

func requires(alts []*node, key string) bool {
	return slices.ContainsFunc(alts, func(n *node) bool { return slices.Contains(n.required, key) })
}

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

func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding the arguments: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// integer writes a number's text without fraction and exponent, if it is a
// whole number of at most 40 digits. whole is true for larger ones too, which
// stay as they are.
func integer(num string) (plain string, whole bool) {
	mantissa, exp, _ := strings.Cut(strings.ToLower(num), "e")
	shift, _ := strconv.Atoi(exp)
	sign := ""
	if rest, ok := strings.CutPrefix(mantissa, "-"); ok {
		sign, mantissa = "-", rest
	}
	head, frac, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(head+frac, "0")
	shift -= len(frac)
	for strings.HasSuffix(digits, "0") && shift < 0 {
		digits, shift = digits[:len(digits)-1], shift+1
	}
	switch {
	case digits == "":
		return "0", true
	case shift < 0:
		return num, false
	case len(digits)+shift > 40:
		return num, true
	}
	return sign + digits + strings.Repeat("0", shift), true
}
