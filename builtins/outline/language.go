package outline

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// language is what an outline knows about one language. A grammar brings the
// names of the nodes; two grammars of one language may name them differently,
// so that a table can hold names of both.
type language struct {
	name string // for people
	id   string // of its grammar: tree_sitter_ID
	exts []string
	// kinds says what nodes mean. A kind that is not in it is not looked into.
	kinds map[string]kind
	// guess makes a table where there is none, from the names of the kinds.
	guess bool
}

// kind is what a node of some kind means.
type kind struct {
	// label makes it a symbol. relabel may give another one, "" for none.
	label   string
	relabel func(t *tree, n int32) string
	// names finds the names of the symbol; nil: nameOf. No name at all is
	// shown as an anonymous symbol, unless named is set.
	names func(t *tree, n int32) []name
	named bool // without a name it is no symbol
	walk  uint8
	// wrap says that a comment before this node is about the declaration inside.
	wrap bool
	// skip says that it may stand between a comment and a declaration.
	skip bool
	// below restricts the label to nodes with a parent of this kind.
	below string
}

// name is one name that a declaration gives, and the node with its lines.
type name struct {
	text string
	at   int32
}

var languages = []*language{
	typescript("TypeScript", "typescript", ".ts", ".mts", ".cts"),
	typescript("TSX", "tsx", ".tsx"),
	typescript("JavaScript", "javascript", ".js", ".jsx", ".mjs", ".cjs"),
	python, golang, clang("C", "c", ".c", ".h"), clang("C++", "cpp", ".cpp", ".cc", ".cxx", ".hpp", ".hxx", ".hh"),
	swift, kotlin, dart,
	{name: "Markdown", exts: []string{".md", ".mdx", ".markdown"}},
}

// byPath finds the language of a file by its extension.
func byPath(name string) *language {
	ext := strings.ToLower(path.Ext(name))
	i := slices.IndexFunc(languages, func(l *language) bool { return slices.Contains(l.exts, ext) })
	if i < 0 || ext == "" {
		return nil
	}
	return languages[i]
}

// cppLine matches lines that C does not have.
var cppLine = regexp.MustCompile(`(?m)^\s*(?:namespace\b[^;(]*\{|template\s*<|class\s+\w+[^;()]*[{:]|using\s+\w+|(?:public|private|protected)\s*:)`)

// looksLikeCPP tells the headers of C++ that end in .h as C's do.
func looksLikeCPP(src []byte) bool { return cppLine.Match(src[:min(len(src), 256<<10)]) }

func byID(id string) *language {
	i := slices.IndexFunc(languages, func(l *language) bool { return l.id == id })
	if i < 0 || id == "" {
		return nil
	}
	return languages[i]
}

// walker binds the table to a grammar's numbers. A language whose table is a
// guess belongs to one pack.
func (l *language) walker(kinds []string) walker {
	if l.guess {
		l.kinds = guess(kinds)
	}
	w := make(walker, len(kinds))
	for i, k := range kinds {
		w[i] = l.kinds[k].walk
	}
	return w
}

// symbols are kinds that are looked into for their name.
func symbol(label string) kind { return kind{label: label, walk: walkOpen} }

func typescript(title, id string, exts ...string) *language {
	open, wrap := kind{walk: walkOpen}, kind{walk: walkOpen, wrap: true}
	space := kind{label: "namespace", walk: walkOpen | walkHolder, named: true}
	exported := func(label string) kind { return kind{label: label, walk: walkOpen, below: "export_statement"} }
	return &language{name: title, id: id, exts: exts, kinds: map[string]kind{
		"program": open, "ERROR": open,
		"export_statement": wrap, "expression_statement": wrap,
		"ambient_declaration": {walk: walkOpen | walkHolder, wrap: true},
		"statement_block":     {walk: walkBody},
		"internal_module":     space, "module": space,
		"function_declaration": symbol("function"), "generator_function_declaration": symbol("function"),
		"function_signature":  symbol("function"),
		"function_expression": exported("function"), "function": exported("function"),
		"generator_function": exported("function"), "arrow_function": exported("function"),
		"class_declaration": symbol("class"), "abstract_class_declaration": symbol("class"), "class": exported("class"),
		"class_body": open, "decorator": {skip: true},
		"method_definition": symbol("method"), "method_signature": symbol("method"), "abstract_method_signature": symbol("method"),
		"public_field_definition": symbol("property"), "field_definition": symbol("property"), "property_signature": symbol("property"),
		"interface_declaration": symbol("interface"), "interface_body": open, "object_type": open,
		"type_alias_declaration": symbol("type"), "intersection_type": open, "union_type": open, "parenthesized_type": open,
		"enum_declaration":     symbol("enum"),
		"lexical_declaration":  {label: "const", relabel: firstWord, names: declarators, walk: walkOpen},
		"variable_declaration": {label: "var", names: declarators, walk: walkOpen},
		"variable_declarator":  open,
		"import_statement":     {label: "import", names: importSource, walk: walkOpen}, "import_require_clause": open,
	}}
}

var python = &language{name: "Python", id: "python", exts: []string{".py"}, kinds: map[string]kind{
	"module": {walk: walkOpen}, "ERROR": {walk: walkOpen},
	"class_definition":     {label: "class", walk: walkOpen | walkHolder},
	"function_definition":  symbol("function"),
	"decorated_definition": {walk: walkOpen, wrap: true},
	"block":                {walk: walkBody},
	"if_statement":         holder, "else_clause": holder, "elif_clause": holder, "with_statement": holder,
	"try_statement": holder, "except_clause": holder, "finally_clause": holder,
	"import_statement":        {label: "import", names: listed, walk: walkOpen},
	"import_from_statement":   {label: "import from", names: field("module_name"), walk: walkOpen},
	"future_import_statement": {label: "import from", names: constant("__future__"), walk: walkOpen},
}}

var holder = kind{walk: walkOpen | walkHolder}

var golang = &language{name: "Go", id: "go", exts: []string{".go"}, kinds: map[string]kind{
	"source_file": {walk: walkOpen}, "ERROR": {walk: walkOpen},
	"package_clause":       symbol("package"),
	"import_declaration":   {label: "import", names: goImports, walk: walkOpen},
	"import_spec_list":     {walk: walkOpen},
	"import_spec":          {walk: walkOpen},
	"function_declaration": symbol("function"), "method_declaration": symbol("method"),
	"type_declaration": {walk: walkOpen, wrap: true}, "const_declaration": {walk: walkOpen, wrap: true}, "var_declaration": {walk: walkOpen, wrap: true},
	"var_spec_list": {walk: walkOpen},
	"type_spec":     symbol("type"), "type_alias": symbol("type"),
	"const_spec":  {label: "const", names: fields, walk: walkOpen},
	"var_spec":    {label: "var", names: fields, walk: walkOpen},
	"struct_type": {walk: walkOpen}, "field_declaration_list": {walk: walkOpen},
	"field_declaration": {label: "field", names: goFields, walk: walkOpen},
	"interface_type":    {walk: walkOpen}, "method_spec_list": {walk: walkOpen},
	"method_spec": symbol("method"), "method_elem": symbol("method"),
}}

func clang(title, id string, exts ...string) *language {
	open, wrap := kind{walk: walkOpen}, kind{walk: walkOpen, wrap: true}
	record := func(label string) kind { return kind{label: label, relabel: defined, walk: walkOpen} }
	l := &language{name: title, id: id, exts: exts, kinds: map[string]kind{
		"translation_unit": open, "ERROR": open,
		"preproc_if": open, "preproc_ifdef": open, "preproc_else": open, "preproc_elif": open, "preproc_elifdef": open,
		"linkage_specification": wrap, "declaration_list": open,
		"function_definition": {label: "function", relabel: prototype, names: declared, walk: walkOpen},
		"declaration":         {label: "function", relabel: prototype, names: declared, walk: walkOpen, wrap: true},
		"field_declaration":   {label: "function", relabel: prototype, names: declared, walk: walkOpen, wrap: true},
		"struct_specifier":    record("struct"), "union_specifier": record("union"), "enum_specifier": record("enum"),
		"field_declaration_list": open,
		"type_definition":        {label: "typedef", names: typedefs, walk: walkOpen, wrap: true},
		"function_declarator":    open, "pointer_declarator": open, "reference_declarator": open, "parenthesized_declarator": open,
		"array_declarator": open, "attributed_declarator": open, "init_declarator": open,
	}}
	if id == "cpp" {
		for k, v := range map[string]kind{
			"class_specifier":      record("class"),
			"namespace_definition": symbol("namespace"),
			"template_declaration": wrap, "concept_definition": symbol("concept"), "alias_declaration": symbol("using"),
			"preproc_if_in_field_declaration_list": open, "preproc_ifdef_in_field_declaration_list": open,
			"preproc_else_in_field_declaration_list": open, "export_declaration": wrap,
		} {
			l.kinds[k] = v
		}
	}
	return l
}

var swift = &language{name: "Swift", id: "swift", exts: []string{".swift"}, kinds: map[string]kind{
	"source_file": {walk: walkOpen}, "ERROR": {walk: walkOpen},
	"class_declaration": {label: "class", relabel: declarationKind, walk: walkOpen},
	"class_body":        {walk: walkOpen}, "enum_class_body": {walk: walkOpen}, "protocol_body": {walk: walkOpen},
	"protocol_declaration": symbol("protocol"),
	"function_declaration": symbol("function"), "protocol_function_declaration": symbol("function"),
	"init_declaration":              {label: "init", names: constant("init"), walk: walkOpen},
	"property_declaration":          {label: "property", names: field("name"), walk: walkOpen},
	"protocol_property_declaration": {label: "property", names: lastWord, walk: walkOpen},
	"typealias_declaration":         symbol("typealias"), "associatedtype_declaration": symbol("associatedtype"),
	"modifiers": {skip: true}, "attribute": {skip: true},
}}

var kotlin = &language{name: "Kotlin", id: "kotlin", exts: []string{".kt", ".kts"}, kinds: map[string]kind{
	"source_file": {walk: walkOpen}, "ERROR": {walk: walkOpen},
	"class_declaration": {label: "class", relabel: kotlinClass, walk: walkOpen},
	"class_body":        {walk: walkOpen}, "enum_class_body": {walk: walkOpen},
	"object_declaration": symbol("object"), "companion_object": symbol("object"),
	"function_declaration": symbol("function"),
	"property_declaration": {label: "property", names: kotlinProperty, walk: walkOpen},
	"variable_declaration": {walk: walkOpen}, "multi_variable_declaration": {walk: walkOpen},
	"type_alias": {label: "typealias", walk: walkOpen},
	"modifiers":  {skip: true},
}}

var dart = &language{name: "Dart", id: "dart", exts: []string{".dart"}, kinds: map[string]kind{
	"program": {walk: walkOpen}, "ERROR": {walk: walkOpen},
	"class_definition": symbol("class"), "class_declaration": symbol("class"), "mixin_application_class": {walk: walkOpen},
	"class_body": {walk: walkOpen}, "extension_body": {walk: walkOpen}, "enum_body": {walk: walkOpen},
	"class_member": {walk: walkOpen, wrap: true}, "class_member_definition": {walk: walkOpen, wrap: true},
	"enum_declaration": symbol("enum"), "mixin_declaration": symbol("mixin"),
	"extension_declaration": symbol("extension"), "extension_type_declaration": symbol("extension"),
	"method_signature":   {label: "method", names: dartMethod, walk: walkOpen},
	"declaration":        {label: "method", names: dartMethod, named: true, walk: walkOpen},
	"function_signature": symbol("function"), "getter_signature": symbol("function"), "setter_signature": symbol("function"),
	"constructor_signature": {walk: walkOpen}, "factory_constructor_signature": {walk: walkOpen}, "constant_constructor_signature": {walk: walkOpen},
	"redirecting_factory_constructor_signature": {walk: walkOpen},
	"type_alias": symbol("typedef"),
	"annotation": {skip: true}, "marker_annotation": {skip: true},
}}

// pack is where a grammar of the language comes from, for `grammar add`.
func (l *language) pack() string {
	switch l.id {
	case "kotlin":
		return "npm:@tree-sitter-grammars/tree-sitter-kotlin@1.1.0"
	default:
		return "npm:@repomix/tree-sitter-wasms@0.1.17#" + l.id
	}
}
