package frontmatter

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Limits of the tree. Every level costs the parser stack, which a process
// cannot get back when it overflows.
const (
	maxDepth  = 48
	maxNodes  = 5000
	maxKeys   = 256 // of one mapping
	maxIndent = 400
	maxLines  = 2000
)

var (
	errDeep = fmt.Errorf("it is nested deeper than %d levels", maxDepth)
	errKeys = fmt.Errorf("it has over %d keys", maxKeys)
)

// parseYAML gives a tree of nil, string, []any and Fields. Scalars keep the
// text they were written with: "1.10" is not 1.1 and "no" is not false. Anchors
// and tags are not followed: no such file needs them, and they can grow
// without bound.
func parseYAML(text string, warnings *[]string) (v any, err error) {
	if err := shallow(text); err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil { // the library's, on input that it did not foresee
			v, err = nil, errors.New("the YAML parser failed on it")
		}
	}()
	f, err := parser.ParseBytes([]byte(text), 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, firstLine(err)
	}
	var docs []ast.Node
	for _, d := range f.Docs {
		if d.Body != nil {
			docs = append(docs, d.Body)
		}
	}
	switch len(docs) {
	case 0:
		return nil, nil
	case 1:
		t := tree{left: maxNodes, warnings: warnings}
		return t.value(docs[0], 0)
	}
	return nil, errors.New("it holds several documents")
}

// shallow refuses text that could nest deeply, before the parser sees it.
func shallow(text string) error {
	flow, lines := 0, 0
	for line := range strings.SplitSeq(text, "\n") {
		if lines++; lines > maxLines {
			return fmt.Errorf("it has over %d lines", maxLines)
		}
		body := strings.TrimLeft(line, " \t")
		if len(line)-len(body) > maxIndent {
			return errDeep
		}
		marks := 0
		for strings.HasPrefix(body, "- ") || strings.HasPrefix(body, "? ") || strings.HasPrefix(body, ": ") {
			body = strings.TrimLeft(body[2:], " \t")
			marks++
		}
		for i := range len(body) {
			switch body[i] {
			case '[', '{':
				flow++
			case ']', '}':
				flow = max(0, flow-1)
			}
			if flow > maxDepth {
				return errDeep
			}
		}
		if marks > maxDepth {
			return errDeep
		}
	}
	return nil
}

// firstLine is a parser's error without the picture of the source below it.
func firstLine(err error) error {
	l, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return errors.New(strings.TrimSpace(l))
}

// tree converts nodes, within limits.
type tree struct {
	left     int
	warnings *[]string
}

func (t *tree) value(n ast.Node, depth int) (any, error) {
	if t.left--; t.left < 0 {
		return nil, fmt.Errorf("it has over %d values", maxNodes)
	}
	if depth > maxDepth {
		return nil, errDeep
	}
	switch n := n.(type) {
	case nil, *ast.NullNode, *ast.CommentGroupNode:
		return nil, nil
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return strings.TrimSpace(n.GetToken().Value), nil
	case *ast.TagNode:
		return t.value(n.Value, depth+1)
	case *ast.SequenceNode:
		out := make([]any, 0, len(n.Values))
		for _, c := range n.Values {
			v, err := t.value(c, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case *ast.MappingNode:
		return t.fields(n.Values, depth)
	case *ast.MappingValueNode:
		return t.fields([]*ast.MappingValueNode{n}, depth)
	case *ast.AnchorNode, *ast.AliasNode:
		return nil, errors.New("it uses an anchor or alias")
	}
	return nil, fmt.Errorf("it uses %s, which is not read here", strings.ToLower(n.Type().String()))
}

func (t *tree) fields(pairs []*ast.MappingValueNode, depth int) (any, error) {
	if len(pairs) > maxKeys {
		return nil, errKeys
	}
	var out Fields
	for _, p := range pairs {
		if p.Key.IsMergeKey() {
			return nil, errors.New("it uses a merge key")
		}
		key := strings.TrimSpace(p.Key.GetToken().Value)
		v, err := t.value(p.Value, depth+1)
		if err != nil {
			return nil, err
		}
		if !out.add(key, v) && t.warnings != nil && len(*t.warnings) < maxWarnings {
			*t.warnings = append(*t.warnings, fmt.Sprintf("%q is there twice, the first counts", key))
		}
	}
	if out == nil {
		out = Fields{}
	}
	return out, nil
}
