package main

import (
	"bytes"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/JohannesKaufmann/dom"
	"github.com/JohannesKaufmann/html-to-markdown/v2/collapse"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/marker"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/strikethrough"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
)

func markdown(n *html.Node, at *url.URL) (string, error) { return convertWith(textBase{}, n, at) }

func convertWith(base converter.Plugin, n *html.Node, at *url.URL) (string, error) {
	c := converter.NewConverter(converter.WithPlugins(
		base,
		commonmark.NewCommonmarkPlugin(),
		strikethrough.NewStrikethroughPlugin(),
		table.NewTablePlugin(table.WithHeaderPromotion(true), table.WithSkipEmptyRows(true), table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal)),
	))
	out, err := c.ConvertNode(n, converter.WithDomain(at.String()))
	return strings.TrimSpace(string(out)), err
}

// textBase takes the place of the converter's base plugin, with the same
// output: that one takes a lock and looks into a map for every byte of text,
// and copies the result a byte at a time, which was a third of all the work
// here in the sandbox.
type textBase struct{}

// Name is the one that commonmark asks for.
func (textBase) Name() string { return "base" }

func (b textBase) Init(c *converter.Converter) error {
	for _, name := range []string{"#comment", "head", "script", "style", "link", "meta", "iframe", "noscript", "input", "textarea"} {
		c.Register.TagType(name, converter.TagTypeRemove, converter.PriorityStandard)
	}
	tags := tagTypes{}
	c.Register.PreRenderer(tags.remove, converter.PriorityEarly)
	c.Register.PreRenderer(tags.collapse, converter.PriorityLate)
	c.Register.TextTransformer(func(_ converter.Context, s string) string { return escape(s) }, converter.PriorityStandard)
	c.Register.PostRenderer(func(_ converter.Context, b []byte) []byte { return trim(b) }, converter.PriorityStandard)
	c.Register.PostRenderer(func(ctx converter.Context, b []byte) []byte { return unescape(b, ctx.UnEscapeContent) }, converter.PriorityStandard+20)
	return nil
}

// tagTypes remembers what the converter says of a node's name: it is asked at
// every node, and sorts a list for each answer.
type tagTypes map[string]tagType

type tagType struct{ removed, block bool }

func (t tagTypes) of(ctx converter.Context, n *html.Node) tagType {
	name := dom.NodeName(n)
	k, ok := t[name]
	if !ok {
		said, known := ctx.GetTagType(name)
		k.removed = said == converter.TagTypeRemove
		k.block = said == converter.TagTypeBlock || !known && dom.NameIsBlockNode(name)
		t[name] = k
	}
	return k
}

// remove takes out what is not rendered, and joins the texts that then meet.
func (t tagTypes) remove(ctx converter.Context, n *html.Node) {
	var last *html.Node
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		switch {
		case t.of(ctx, c).removed:
			n.RemoveChild(c)
		case c.Type == html.TextNode && last != nil && last.Type == html.TextNode:
			last.Data += c.Data
			n.RemoveChild(c)
		default:
			t.remove(ctx, c)
			last = c
		}
		c = next
	}
}

func (t tagTypes) collapse(ctx converter.Context, n *html.Node) {
	collapse.Collapse(n, &collapse.DomFuncs{IsBlockNode: func(n *html.Node) bool { return t.of(ctx, n).block }})
}

// What a character may need in Markdown.
const (
	plainChar   = iota
	markedChar  // a mark: the converter's rules decide in the end
	afterDigit  // a mark only behind a digit: the end of a list's number
	afterSpace  // a mark only behind white space: a bullet or a line
	entityChar  // an entity
	invalidChar // U+FFFD instead
)

var meaning = func() (m [256]byte) {
	for _, c := range []byte("\\*_#=[]!~`|") {
		m[c] = markedChar
	}
	m['.'], m[')'] = afterDigit, afterDigit
	m['-'], m['+'] = afterSpace, afterSpace
	m['<'], m['>'] = entityChar, entityChar
	m[0] = invalidChar
	return m
}()

// escape marks the characters that may mean something in Markdown. A character
// at the beginning of s may stand behind anything.
func escape(s string) string {
	i := 0
	for i < len(s) && meaning[s[i]] == plainChar {
		i++
	}
	if i == len(s) {
		return s
	}
	out := append(make([]byte, 0, len(s)+len(s)/8+8), s[:i]...)
	for ; i < len(s); i++ {
		c := s[i]
		switch meaning[c] {
		case markedChar:
			out = append(out, marker.BytesMarkerEscaping[0])
		case afterDigit:
			if i == 0 || '0' <= s[i-1] && s[i-1] <= '9' || s[i-1] >= utf8.RuneSelf || s[i-1] < ' ' {
				out = append(out, marker.BytesMarkerEscaping[0])
			}
		case afterSpace:
			if i == 0 || s[i-1] <= ' ' {
				out = append(out, marker.BytesMarkerEscaping[0])
			}
		case entityChar:
			entity := "&lt;"
			if c == '>' {
				entity = "&gt;"
			}
			out = append(out, entity...)
			continue
		case invalidChar:
			out = utf8.AppendRune(out, utf8.RuneError)
			continue
		}
		out = append(out, c)
	}
	return string(out)
}

// trim leaves at most one empty line between others, and no hard line break
// before one.
func trim(b []byte) []byte {
	b = bytes.TrimSpace(b)
	out := make([]byte, 0, len(b))
	breaks, hard := 0, false
	for {
		n := bytes.IndexByte(b, '\n')
		if n < 0 {
			break
		}
		line := b[:n]
		if breaks++; len(bytes.Trim(line, " ")) > 0 {
			breaks = 1
		}
		if breaks <= 2 {
			out = append(out, b[:n+1]...)
			hard = hard || bytes.HasSuffix(line, []byte("  "))
		}
		b = b[n+1:]
	}
	out = append(out, b...)
	if hard {
		for _, before := range []string{"  \n\n", "  \n  \n", "  \n \n"} {
			out = bytes.ReplaceAll(out, []byte(before), []byte("\n\n"))
		}
	}
	return out
}

// unescape lets the rules of the converter turn marks into backslashes or
// nothing, in the blocks that have marks: no rule looks past an empty line.
func unescape(b []byte, rules func([]byte) []byte) []byte {
	const gap = "\n\n"
	out := make([]byte, 0, len(b)+len(b)/32)
	for len(b) > 0 {
		mark := bytes.IndexByte(b, marker.BytesMarkerEscaping[0])
		if mark < 0 {
			return append(out, b...)
		}
		start, end := max(bytes.LastIndex(b[:mark], []byte(gap)), 0), len(b)
		if n := bytes.Index(b[mark:], []byte(gap)); n >= 0 {
			end = mark + n
		}
		out = append(out, b[:start]...)
		out = append(out, rules(b[start:end])...)
		b = b[end:]
	}
	return out
}
