package schema

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
)

// maxSubschemas bounds work in the validator that grows with their square.
const maxSubschemas = 5_000

// maxPattern bounds one regular expression, in bytes.
const maxPattern = 4 << 10

// document is a schema that was inspected.
type document struct {
	root    any
	top     *node
	byPtr   map[string]*node
	anchors map[string]string // name to pointer
}

// inspect resolves a schema's references and refuses what is over budget. It
// takes out of root what the validator cannot do: a root $id, which would
// move the base of local references, and patterns that RE2 does not have
// (look-around), which are then not enforced.
func inspect(root any) (*document, error) {
	if m, ok := root.(map[string]any); ok {
		delete(m, "$id")
	}
	d := &document{root: root, byPtr: map[string]*node{}, anchors: map[string]string{}}
	d.findAnchors(root, "")
	var err error
	if d.top, err = d.build(root, "", false); err != nil {
		return nil, err
	}
	for _, n := range d.byPtr {
		if err := n.settle(); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// build makes the node of the schema v at a pointer. based says that a nested
// $id lies above, below which '#' would mean something else.
func (d *document) build(v any, at string, based bool) (*node, error) {
	if n := d.byPtr[at]; n != nil {
		return n, nil
	}
	if len(d.byPtr) >= maxSubschemas {
		return nil, fmt.Errorf("it has more than %d subschemas", maxSubschemas)
	}
	n := &node{at: at, types: tAny}
	d.byPtr[at] = n
	switch v := v.(type) {
	case bool:
		if !v {
			n.types = 0
		}
		return n, nil
	case map[string]any:
		b := builder{d: d, n: n, m: v, based: based}
		if id, ok := v["$id"].(string); ok && !strings.HasPrefix(id, "#") {
			b.based = true
		}
		return n, b.fill()
	}
	return nil, fmt.Errorf("%q is neither an object nor a boolean", "#"+at)
}

// builder fills one node from its object.
type builder struct {
	d     *document
	n     *node
	m     map[string]any
	based bool
}

func (b *builder) fill() error {
	return errors.Join(b.ownTypes(), b.refs(), b.pattern(), b.objects(), b.arrays(), b.inPlace())
}

func (b *builder) ownTypes() error {
	switch t := b.m["type"].(type) {
	case string:
		b.n.types = typeNames[t]
	case []any:
		b.n.types = 0
		for _, e := range t {
			name, _ := e.(string)
			b.n.types |= typeNames[name]
		}
	default:
		values, _ := b.m["enum"].([]any)
		if c, ok := b.m["const"]; ok {
			values = []any{c}
		}
		for i, v := range values {
			if i == 0 {
				b.n.types = 0
			}
			b.n.types |= typeOf(v)
		}
	}
	list, _ := b.m["required"].([]any)
	for _, e := range list {
		if name, ok := e.(string); ok {
			b.n.required = append(b.n.required, name)
		}
	}
	return nil
}

func (b *builder) refs() error {
	for _, k := range [...]string{"$ref", "$dynamicRef", "$recursiveRef"} {
		v, ok := b.m[k]
		if !ok {
			continue
		}
		ref, ok := v.(string)
		if !ok {
			return fmt.Errorf("the %s at %q is not a string", k, "#"+b.n.at)
		}
		to, err := b.d.resolve(ref, b.based)
		if err != nil {
			return err
		}
		b.n.same = append(b.n.same, to)
	}
	return nil
}

func (b *builder) pattern() error {
	p, ok := b.m["pattern"].(string)
	if !ok {
		return nil
	}
	if _, usable, err := compilePattern(p); err != nil {
		return err
	} else if !usable {
		delete(b.m, "pattern")
	}
	return nil
}

// compilePattern compiles an ECMA pattern as far as RE2 has it.
func compilePattern(p string) (re *regexp.Regexp, usable bool, err error) {
	if len(p) > maxPattern {
		return nil, false, fmt.Errorf("a pattern of %d bytes is over the limit of %d", len(p), maxPattern)
	}
	re, err = regexp.Compile(p)
	if bad, ok := errors.AsType[*syntax.Error](err); ok {
		if bad.Code == syntax.ErrInvalidPerlOp || bad.Code == syntax.ErrInvalidEscape || bad.Code == syntax.ErrInvalidCharRange {
			return nil, false, nil
		}
		return nil, false, fmt.Errorf("the pattern %.100q: %w", p, err)
	}
	return re, err == nil, err
}

func (b *builder) child(key string) (*node, error) {
	v, ok := b.m[key]
	if !ok {
		return nil, nil
	}
	return b.d.build(v, b.n.at+"/"+escape(key), b.based)
}

func (b *builder) list(key string) ([]*node, error) {
	vs, _ := b.m[key].([]any)
	out := make([]*node, 0, len(vs))
	for i, v := range vs {
		n, err := b.d.build(v, b.n.at+"/"+escape(key)+"/"+strconv.Itoa(i), b.based)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// each builds the schemas of a map in the order of their names, so that an
// error is the same each time.
func (b *builder) each(key string, use func(name string, n *node)) error {
	m, _ := b.m[key].(map[string]any)
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if _, list := m[name].([]any); list {
			continue // dependencies of draft 7: names, not a schema
		}
		n, err := b.d.build(m[name], b.n.at+"/"+escape(key)+"/"+escape(name), b.based)
		if err != nil {
			return err
		}
		use(name, n)
	}
	return nil
}

func (b *builder) objects() error {
	b.n.props = map[string]*node{}
	ignore := func(string, *node) {}
	err := errors.Join(
		b.each("properties", func(name string, n *node) { b.n.props[name] = n }),
		b.each("$defs", ignore), b.each("definitions", ignore),
		b.each("patternProperties", func(name string, n *node) {
			b.n.patterns = append(b.n.patterns, pattern{node: n})
		}),
	)
	if err != nil {
		return err
	}
	if err := b.patternNames(); err != nil {
		return err
	}
	b.n.rest, err = b.child("additionalProperties")
	if closed, ok := b.m["additionalProperties"].(bool); ok && !closed {
		b.n.closed = true
	}
	_, err2 := b.child("unevaluatedProperties")
	_, err3 := b.child("propertyNames")
	return errors.Join(err, err2, err3)
}

// patternNames compiles the patterns of patternProperties. One that RE2 does
// not have is dropped, and with it the ban on other names, which could not be
// judged any more.
func (b *builder) patternNames() error {
	m, _ := b.m["patternProperties"].(map[string]any)
	b.n.patterns = nil
	for name := range m {
		re, usable, err := compilePattern(name)
		if err != nil {
			return err
		}
		if !usable {
			delete(m, name)
			delete(b.m, "additionalProperties")
			delete(b.m, "unevaluatedProperties")
			continue
		}
		b.n.patterns = append(b.n.patterns, pattern{re, b.d.byPtr[b.n.at+"/patternProperties/"+escape(name)]})
	}
	return nil
}

func (b *builder) arrays() (err error) {
	if _, tuple := b.m["items"].([]any); tuple { // before 2020-12
		b.n.prefix, err = b.list("items")
		if err == nil {
			b.n.items, err = b.child("additionalItems")
		}
	} else if b.n.items, err = b.child("items"); err == nil {
		b.n.prefix, err = b.list("prefixItems")
	}
	_, err2 := b.child("contains")
	_, err3 := b.child("unevaluatedItems")
	_, err4 := b.child("contentSchema")
	return errors.Join(err, err2, err3, err4)
}

func (b *builder) inPlace() error {
	all, err := b.list("allOf")
	b.n.same = append(b.n.same, all...)
	for _, key := range [...]string{"anyOf", "oneOf"} {
		alt, err2 := b.list(key)
		if len(alt) > 0 {
			b.n.either = append(b.n.either, alt)
		}
		err = errors.Join(err, err2)
	}
	for _, key := range [...]string{"not", "if", "then", "else"} {
		n, err2 := b.child(key)
		if n != nil {
			b.n.others = append(b.n.others, n)
		}
		err = errors.Join(err, err2)
	}
	for _, key := range [...]string{"dependentSchemas", "dependencies"} {
		err = errors.Join(err, b.each(key, func(_ string, n *node) { b.n.others = append(b.n.others, n) }))
	}
	return err
}
