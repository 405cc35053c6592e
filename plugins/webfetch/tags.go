package main

import (
	"bytes"

	"golang.org/x/net/html/atom"
)

func set(tags ...atom.Atom) map[atom.Atom]bool {
	m := make(map[atom.Atom]bool, len(tags))
	for _, t := range tags {
		m[t] = true
	}
	return m
}

var (
	// dropped never carries text of the page.
	dropped = set(atom.Style, atom.Svg, atom.Canvas, atom.Template, atom.Iframe, atom.Object, atom.Embed,
		atom.Applet, atom.Noframes, atom.Noembed, atom.Select, atom.Datalist, atom.Textarea, atom.Math,
		atom.Audio, atom.Video, atom.Map, atom.Link)
	void = set(atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Link,
		atom.Meta, atom.Param, atom.Source, atom.Track, atom.Wbr)
	// formats are the elements of the HTML standard's list of active formatting elements.
	formats = set(atom.A, atom.B, atom.Big, atom.Code, atom.Em, atom.Font, atom.I, atom.Nobr, atom.S, atom.Small,
		atom.Strike, atom.Strong, atom.Tt, atom.U)
	indents = set(atom.Blockquote, atom.Ul, atom.Ol, atom.Dl, atom.Menu, atom.Dir)
)

// closing is one way in which a start tag closes an open element.
type closing struct {
	closes []atom.Atom
	within []atom.Atom // it does not look past these
}

// implied says what a start tag closes (HTML standard, 13.1.2.4).
var implied = map[atom.Atom][]closing{}

func init() {
	rule := func(c closing, starts ...atom.Atom) {
		for _, s := range starts {
			implied[s] = append(implied[s], c)
		}
	}
	list := func(a ...atom.Atom) []atom.Atom { return a }
	table := list(atom.Table)
	rule(closing{list(atom.P), list(atom.Button, atom.Table, atom.Td, atom.Th, atom.Caption)},
		atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Details, atom.Div, atom.Dl, atom.Fieldset,
		atom.Figcaption, atom.Figure, atom.Footer, atom.Form, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6,
		atom.Header, atom.Hr, atom.Main, atom.Menu, atom.Nav, atom.Ol, atom.P, atom.Pre, atom.Section, atom.Table,
		atom.Ul, atom.Li, atom.Dd, atom.Dt)
	rule(closing{list(atom.Li), list(atom.Ul, atom.Ol, atom.Menu, atom.Table, atom.Div, atom.Section, atom.Article)}, atom.Li)
	rule(closing{list(atom.Dt, atom.Dd), list(atom.Dl, atom.Table, atom.Div)}, atom.Dt, atom.Dd)
	rule(closing{list(atom.Td, atom.Th), table}, atom.Td, atom.Th, atom.Tr, atom.Tbody, atom.Thead, atom.Tfoot)
	rule(closing{list(atom.Tr), table}, atom.Tr, atom.Tbody, atom.Thead, atom.Tfoot)
	rule(closing{list(atom.Tbody, atom.Thead, atom.Tfoot), table}, atom.Tbody, atom.Thead, atom.Tfoot)
}

// kept are the attributes that Readability or the Markdown converter look at.
var kept = map[string]bool{
	"alt": true, "aria-hidden": true, "aria-modal": true, "border": true, "cellpadding": true, "cellspacing": true, "class": true,
	"colspan": true, "content": true, "data-src": true, "data-srcset": true, "datatable": true, "datetime": true, "dir": true,
	"hidden": true, "href": true, "id": true, "itemprop": true, "itemscope": true, "itemtype": true, "lang": true, "name": true, "property": true,
	"rel": true, "role": true, "rowspan": true, "src": true, "srcset": true, "start": true, "style": true,
	"summary": true, "title": true,
}

func keep(key string, value []byte) bool {
	if !kept[key] || len(value) > maxAttribute {
		return false
	}
	switch key {
	case "style": // only what hides an element counts
		return bytes.Contains(value, []byte("display")) || bytes.Contains(value, []byte("visibility"))
	case "colspan", "rowspan": // a span is written out: cells for nothing
		return len(value) == 1 && value[0] >= '1' && value[0] <= '9'
	case "src", "srcset", "href":
		return !bytes.HasPrefix(value, []byte("data:")) && !bytes.HasPrefix(bytes.ToLower(value), []byte("javascript:"))
	}
	return true
}
