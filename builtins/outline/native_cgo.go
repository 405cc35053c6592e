//go:build cgo

package outline

import (
	"context"
	"errors"

	sitter "github.com/smacker/go-tree-sitter"
	"github.com/smacker/go-tree-sitter/c"
	"github.com/smacker/go-tree-sitter/cpp"
	tsgo "github.com/smacker/go-tree-sitter/golang"
	"github.com/smacker/go-tree-sitter/javascript"
	tskotlin "github.com/smacker/go-tree-sitter/kotlin"
	tspython "github.com/smacker/go-tree-sitter/python"
	tsswift "github.com/smacker/go-tree-sitter/swift"
	"github.com/smacker/go-tree-sitter/typescript/tsx"
	ts "github.com/smacker/go-tree-sitter/typescript/typescript"
)

// grammars are the languages of this build whose parsers run in the worker.
// Those of Swift and Kotlin know these languages as they were years ago: a
// pack does better.
var grammars = map[string]func() *sitter.Language{
	"typescript": ts.GetLanguage, "tsx": tsx.GetLanguage, "javascript": javascript.GetLanguage,
	"python": tspython.GetLanguage, "go": tsgo.GetLanguage, "c": c.GetLanguage, "cpp": cpp.GetLanguage,
	"swift": tsswift.GetLanguage, "kotlin": tskotlin.GetLanguage,
}

// native reports whether the worker parses a language.
func native(id string) bool { return grammars[id] != nil }

// grammar is a parser's language with its names.
type grammar struct {
	lang   *sitter.Language
	kinds  []string
	fields []string
	number map[string]uint16 // of a field
	walk   walker
}

func loadGrammar(l *language) *grammar {
	g := &grammar{lang: grammars[l.id](), fields: []string{""}, number: map[string]uint16{}}
	for i := range g.lang.SymbolCount() {
		g.kinds = append(g.kinds, g.lang.SymbolName(sitter.Symbol(i)))
	}
	g.kinds = append(g.kinds, "ERROR")
	for i := 1; ; i++ {
		f := g.lang.FieldName(i)
		if f == "" {
			break
		}
		g.number[f] = uint16(i)
		g.fields = append(g.fields, f)
	}
	g.walk = l.walker(g.kinds)
	return g
}

// parser is the worker's state: what was loaded stays.
type parser struct {
	loaded map[string]*grammar
}

func (p *parser) parse(ctx context.Context, l *language, src []byte) (*tree, error) {
	if !native(l.id) {
		return nil, errors.New("this build has no parser for it")
	}
	g := p.loaded[l.id]
	if g == nil {
		g = loadGrammar(l)
		if p.loaded == nil {
			p.loaded = map[string]*grammar{}
		}
		p.loaded[l.id] = g
	}
	sp := sitter.NewParser()
	defer sp.Close()
	sp.SetLanguage(g.lang)
	parsed, err := sp.ParseCtx(ctx, nil, src)
	if err != nil {
		return nil, err
	}
	defer parsed.Close()
	root := parsed.RootNode()
	t := &tree{kinds: g.kinds, fields: g.fields, src: src}
	g.read(t, root)
	if root.HasError() && !t.marked() {
		t.bad, t.badRow = true, firstError(root)
	}
	return t, nil
}

// read copies the open part of a tree.
func (g *grammar) read(t *tree, root *sitter.Node) {
	c := sitter.NewTreeCursor(root)
	defer c.Close()
	var path [maxDepth + 1]uint16 // kinds of the nodes above
	depth := 0
	for {
		n := c.CurrentNode()
		kind := min(uint16(n.Symbol()), uint16(len(g.kinds)-1)) // an error's number is the largest
		var flags uint8
		if n.IsNamed() {
			flags |= flagNamed
		}
		if n.IsError() || n.IsMissing() {
			flags |= flagError
		}
		var f uint16
		if depth > 0 {
			f = g.number[c.CurrentFieldName()]
		}
		t.nodes = append(t.nodes, node{kind: kind, field: f, flags: flags, depth: uint16(depth), start: n.StartByte(), end: n.EndByte(),
			row: n.StartPoint().Row, endRow: n.EndPoint().Row})
		parent := kind
		if depth > 0 {
			parent = path[depth-1]
		}
		if depth < maxDepth && len(t.nodes) < maxNodes && g.walk.open(kind, parent) && c.GoToFirstChild() {
			path[depth] = kind
			depth++
			continue
		}
		for !c.GoToNextSibling() {
			if depth == 0 || !c.GoToParent() {
				return
			}
			depth--
		}
		if len(t.nodes) >= maxNodes {
			return
		}
	}
}

// firstError goes down to the first error in a tree.
func firstError(n *sitter.Node) uint32 {
	for {
		row := n.StartPoint().Row
		if n.IsError() || n.IsMissing() {
			return row
		}
		var next *sitter.Node
		for i := range int(n.ChildCount()) {
			if c := n.Child(i); c.HasError() || c.IsMissing() {
				next = c
				break
			}
		}
		if next == nil {
			return row
		}
		n = next
	}
}
