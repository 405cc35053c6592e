package main

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
)

// decode turns a body into UTF-8. The encoding is that of the byte order mark,
// the header or a meta element, in this order (HTML standard, 13.2.3.1). A
// label that nobody knows is passed over, with a note.
func decode(body []byte, headerLabel string, isHTML bool) (text []byte, note string) {
	e, name := marked(body)
	if e == nil {
		labels := []string{headerLabel}
		if isHTML {
			labels = append(labels, metaLabel(body))
		}
		for _, label := range labels {
			if label == "" {
				continue
			}
			if e, name = charset.Lookup(label); e != nil && e != encoding.Replacement {
				break
			}
			e, note = nil, fmt.Sprintf("The page names a character set that is not known: %q.", clip(label, 40))
		}
	}
	if e == nil {
		name = "utf-8"
		if !utf8.Valid(body) {
			e, name = charset.Lookup("windows-1252")
			note = strings.TrimSpace(note + " It was read as windows-1252, which may be wrong.")
		} else if note != "" {
			note += " It was read as UTF-8."
		}
	}
	if name != "utf-8" {
		if decoded, err := e.NewDecoder().Bytes(body); err == nil {
			body = decoded
		}
	}
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	if !utf8.Valid(body) { // which is quick to say of most pages
		body = bytes.ToValidUTF8(body, []byte("\ufffd"))
	}
	return body, note
}

// marked returns the encoding that a byte order mark names.
func marked(body []byte) (encoding.Encoding, string) {
	for _, m := range []struct{ mark, label string }{
		{"\xef\xbb\xbf", "utf-8"}, {"\xfe\xff", "utf-16be"}, {"\xff\xfe", "utf-16le"},
	} {
		if bytes.HasPrefix(body, []byte(m.mark)) {
			return charset.Lookup(m.label)
		}
	}
	return nil, ""
}

// metaLabel returns the character set that a page's meta element names. Pages
// should name it within 1,024 bytes; many do so later.
func metaLabel(page []byte) string {
	z := html.NewTokenizer(bytes.NewReader(page[:min(len(page), 8<<10)]))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return ""
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			switch atom.Lookup(name) {
			case atom.Body:
				return ""
			case atom.Meta:
				if label := metaCharset(z, more); label != "" {
					return label
				}
			}
		}
	}
}

func metaCharset(z *html.Tokenizer, more bool) string {
	var label, content string
	var contentType bool
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch string(key) {
		case "charset":
			label = string(value)
		case "content":
			content = string(value)
		case "http-equiv":
			contentType = strings.EqualFold(string(value), "content-type")
		}
	}
	if label == "" && contentType {
		_, label = mediaType(content)
	}
	// A page that can be read as bytes far enough to find this is not UTF-16.
	if l := strings.ToLower(strings.TrimSpace(label)); strings.HasPrefix(l, "utf-16") {
		return "utf-8"
	}
	return label
}

// mediaType splits a Content-Type into its type, in lower case, and its
// charset. It forgives what mime.ParseMediaType refuses, as browsers do.
func mediaType(header string) (kind, label string) {
	kind, rest, _ := strings.Cut(header, ";")
	for _, p := range strings.Split(rest, ";") {
		key, value, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(key), "charset") && label == "" {
			label = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return strings.ToLower(strings.TrimSpace(kind)), label
}

// clip cuts s to at most n bytes, at a rune boundary.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
