package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
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
