package outline

import "strings"

// nameOf finds the name of most declarations: the field of that name, or the
// first identifier.
func nameOf(t *tree, n int32) []name {
	c := t.child(n, "name")
	for i := t.first(n); c < 0 && i >= 0; i = t.nodes[i].next {
		if strings.HasSuffix(t.kind(i), "identifier") {
			c = i
		}
	}
	if c < 0 {
		return nil
	}
	return []name{{t.text(c), n}}
}

func field(f string) func(*tree, int32) []name {
	return func(t *tree, n int32) []name {
		if c := t.child(n, f); c >= 0 {
			return []name{{t.text(c), n}}
		}
		return nil
	}
}

// lastWord is the name where its node begins with a keyword.
func lastWord(t *tree, n int32) []name {
	c := t.child(n, "name")
	if c < 0 {
		return nil
	}
	words := strings.Fields(t.text(c))
	return joined(words[max(0, len(words)-1):], n)
}

func constant(text string) func(*tree, int32) []name {
	return func(_ *tree, n int32) []name { return []name{{text, n}} }
}

// fields are all children in the field "name".
func fields(t *tree, n int32) []name {
	var out []name
	for c := t.first(n); c >= 0; c = t.nodes[c].next {
		if f := t.nodes[c].field; f != 0 && t.fields[f] == "name" && t.nodes[c].flags&flagNamed != 0 {
			out = append(out, name{t.text(c), n})
		}
	}
	return out
}

// listed joins what an import names.
func listed(t *tree, n int32) []name {
	var list []string
	for c := t.first(n); c >= 0; c = t.nodes[c].next {
		if t.nodes[c].flags&flagNamed != 0 && !strings.HasSuffix(t.kind(c), "comment") {
			list = append(list, t.text(c))
		}
	}
	return joined(list, n)
}

func joined(list []string, n int32) []name {
	if len(list) == 0 {
		return nil
	}
	return []name{{strings.Join(list, ", "), n}}
}

// firstWord is the keyword that a declaration begins with.
func firstWord(t *tree, n int32) string {
	if c := t.first(n); c >= 0 {
		return t.text(c)
	}
	return ""
}

func declarators(t *tree, n int32) []name {
	var out []name
	for c := t.first(n); c >= 0; c = t.nodes[c].next {
		if t.kind(c) == "variable_declarator" {
			for _, d := range nameOf(t, c) {
				out = append(out, name{d.text, c})
			}
		}
	}
	if len(out) == 1 {
		out[0].at = n
	}
	return out
}

func importSource(t *tree, n int32) []name {
	c := t.child(n, "source")
	if c < 0 {
		if r := t.find(n, "import_require_clause"); r >= 0 {
			c = t.child(r, "source")
		}
	}
	if c < 0 {
		return nil
	}
	return []name{{strings.Trim(t.text(c), "\"'`"), n}}
}

func goImports(t *tree, n int32) []name {
	var list []string
	var visit func(n int32)
	visit = func(n int32) {
		for c := t.first(n); c >= 0; c = t.nodes[c].next {
			if p := t.child(c, "path"); p >= 0 {
				list = append(list, strings.Trim(t.text(p), "\"`"))
			} else {
				visit(c)
			}
		}
	}
	visit(n)
	return joined(list, n)
}

func goFields(t *tree, n int32) []name {
	if list := fields(t, n); len(list) > 0 {
		return list
	}
	if c := t.child(n, "type"); c >= 0 { // embedded
		return []name{{t.text(c), n}}
	}
	return nil
}

// defined leaves out mentions of a struct, union, enum or class, and unnamed
// ones that a typedef names.
func defined(t *tree, n int32) string {
	switch k := t.kind(n); {
	case t.child(n, "body") < 0:
		return ""
	case t.child(n, "name") < 0 && t.nodes[n].parent >= 0 && t.kind(t.nodes[n].parent) == "type_definition":
		return ""
	default:
		return strings.TrimSuffix(k, "_specifier")
	}
}

// declarator follows the declarators from n to the innermost one that is not
// an identifier, and to the identifier.
func declarator(t *tree, n int32) (outer, id int32) {
	outer, id = -1, n
	for {
		c := t.child(id, "declarator")
		if c < 0 {
			switch t.kind(id) {
			case "reference_declarator", "parenthesized_declarator", "attributed_declarator":
				for i := t.first(id); i >= 0; i = t.nodes[i].next {
					if t.nodes[i].flags&flagNamed != 0 {
						c = i
					}
				}
			}
		}
		if c < 0 {
			return outer, id
		}
		outer, id = id, c
	}
}

// prototype is "function" for declarations and definitions of functions: the
// grammar also has others that look like them (a member with "= 0").
func prototype(t *tree, n int32) string {
	outer, id := declarator(t, n)
	if outer >= 0 && outer != n && t.kind(outer) == "function_declarator" || id != n && t.kind(id) == "operator_cast" {
		return "function"
	}
	return ""
}

func declared(t *tree, n int32) []name {
	_, id := declarator(t, n)
	if id == n {
		return nil
	}
	text := t.text(id)
	if t.kind(id) == "operator_cast" {
		text, _, _ = strings.Cut(text, "(")
	}
	return []name{{text, n}}
}

func typedefs(t *tree, n int32) []name {
	var out []name
	for c := t.first(n); c >= 0; c = t.nodes[c].next {
		if f := t.nodes[c].field; f != 0 && t.fields[f] == "declarator" {
			_, id := declarator(t, c)
			out = append(out, name{t.text(id), n})
		}
	}
	return out
}

func declarationKind(t *tree, n int32) string {
	if c := t.child(n, "declaration_kind"); c >= 0 {
		return t.text(c)
	}
	if c := t.find(n, "class", "struct", "enum", "extension", "actor"); c >= 0 {
		return t.text(c)
	}
	return "class"
}

func kotlinClass(t *tree, n int32) string {
	for c := t.first(n); c >= 0; c = t.nodes[c].next {
		switch k := t.kind(c); k {
		case "interface", "enum":
			return k
		case "modifiers":
			for _, w := range strings.Fields(t.text(c)) {
				if w == "enum" {
					return w
				}
			}
		case "enum_class_body":
			return "enum"
		}
	}
	return "class"
}

func kotlinProperty(t *tree, n int32) []name {
	var out []name
	for c := t.first(n); c >= 0; c = t.nodes[c].next {
		switch t.kind(c) {
		case "variable_declaration":
			out = append(out, nameOf(t, c)...)
		case "multi_variable_declaration":
			for v := t.first(c); v >= 0; v = t.nodes[v].next {
				if t.kind(v) == "variable_declaration" {
					out = append(out, nameOf(t, v)...)
				}
			}
		}
	}
	for i := range out {
		out[i].at = n
	}
	return out
}

// dartMethod is the name inside a member's signature.
func dartMethod(t *tree, n int32) []name {
	for c := t.first(n); c >= 0; c = t.nodes[c].next {
		k := t.kind(c)
		if !strings.HasSuffix(k, "_signature") {
			continue
		}
		switch k {
		case "operator_signature":
			text, _, _ := strings.Cut(t.text(c), "(")
			if i := strings.Index(text, "operator"); i >= 0 {
				text = text[i:]
			}
			return []name{{text, n}}
		case "function_signature", "getter_signature", "setter_signature":
			if list := nameOf(t, c); len(list) > 0 {
				return []name{{list[0].text, n}}
			}
		default: // constructors, whose name may have two parts
			text, _, _ := strings.Cut(t.text(c), "(")
			if words := strings.Fields(text); len(words) > 0 {
				return []name{{words[len(words)-1], n}}
			}
		}
	}
	return nil
}
