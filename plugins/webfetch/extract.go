package main

import (
	"bytes"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	readability "github.com/go-shiori/go-readability"
	"golang.org/x/net/html"
)

// article is what is left of a page.
type article struct {
	title, byline, site string
	published           time.Time
	text                string // Markdown, or plain text
	notes               []string
}

// extract finds the article of a page and renders it as Markdown. A page that
// is too large or too strange for that is read as plain text, with a note.
func extract(page []byte, at *url.URL) article {
	r := reduce(page)
	if r.large {
		a := plain(page)
		a.notes = append(a.notes, "The page is too large to find its article, so this is the plain text of all of it.")
		return a
	}
	doc, err := html.Parse(bytes.NewReader(r.html))
	if err != nil {
		a := plain(r.html)
		a.notes = append(a.notes, "The page's HTML is nested too deeply to parse, so this is its plain text.")
		return a
	}
	a, node := readable(doc, at)
	if node == nil {
		node = doc
		a.notes = append(a.notes, "The page has no recognisable article, so this is all of it.")
	}
	if r.deep {
		a.notes = append(a.notes, "Some elements were nested too deeply and were flattened.")
	}
	if a.text, err = markdown(node, at); err != nil {
		p := plain(r.html)
		a.text = p.text
		a.notes = append(a.notes, "The page could not be turned into Markdown, so this is its plain text.")
	}
	return a
}

// readable runs Readability: the one place that knows which library does it.
// The node is nil where the page has no article.
func readable(doc *html.Node, at *url.URL) (article, *html.Node) {
	parser := readability.NewParser()
	found, err := parser.ParseDocument(doc, at)
	if err != nil {
		return article{title: title(doc)}, nil
	}
	a := article{title: found.Title, byline: found.Byline, site: found.SiteName}
	if found.PublishedTime != nil {
		a.published = *found.PublishedTime
	}
	if a.title == "" {
		a.title = title(doc)
	}
	if found.Node == nil || indexPage(found.TextContent, doc) {
		return a, nil
	}
	return a, found.Node
}

// indexPage reports whether an article is a scrap of a page that is mostly
// something else, such as a list of links.
func indexPage(text string, doc *html.Node) bool {
	const scrap, share = 400, 8
	n := utf8.RuneCountInString(text)
	return n < scrap && visibleText(doc, n*share+scrap) > n*share+scrap
}

// visibleText counts the bytes of text under n, up to a limit.
func visibleText(n *html.Node, limit int) int {
	total := 0
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			total += len(strings.TrimSpace(d.Data))
		}
		if total > limit {
			break
		}
	}
	return total
}

func title(doc *html.Node) string {
	for d := range doc.Descendants() {
		if d.Type == html.ElementNode && d.Data == "title" && d.FirstChild != nil {
			return strings.Join(strings.Fields(d.FirstChild.Data), " ")
		}
	}
	return ""
}
