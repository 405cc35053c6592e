package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"golang.org/x/net/html"

	"github.com/elfhost/elfhost/internal/shared"
)

// sameMarkdown compares the converter with its own base plugin.
func sameMarkdown(t *testing.T, name string, page []byte) {
	t.Helper()
	r := reduce(page)
	var doc [2]*html.Node // the conversion changes it
	for i := range doc {
		d, err := html.Parse(bytes.NewReader(r.html))
		if err != nil {
			return
		}
		doc[i] = d
	}
	at := address(t, "http://example.org/dir/")
	want, err1 := convertWith(base.NewBasePlugin(), doc[0], at)
	got, err2 := markdown(doc[1], at)
	if got != want || (err1 == nil) != (err2 == nil) {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		t.Errorf("%s: at %d: %.80q, %v\nwant %.80q, %v", name, i, got[max(0, i-20):], err2, want[max(0, i-20):], err1)
	}
}

var awkward = []string{
	"1. one<p>2) two<p>a. b<p>12.5 and 3.", "<p>- x<p>+ y<p>a - b -c<p>---<p>- - -<p>--<br>--", "<p>*a* _b_ **c** snake_case 2 * 3",
	"<p># no<p>a # b<p>####### x<h2>C # </h2><h2># x #</h2>", "<p>title<br>===<p>title<br>---<p>t<br> -", "<p>[a](b) ![c] [d] ! [e",
	"<p>a | b<table><tr><td>x|y<td>1.</table>", "<p>`x` ``` ~~~ ~a~ ~~b~~<p>~~~<br>x", "<p>&lt;b&gt; & &amp;amp; \\ \\* $x$ 'q' \"q\"",
	"<p>a\x07. b\x07- c\x07<p>\x07", "<p>a<b> b </b>c<i>.</i>d<p>1<b>.</b> x<p><b>1</b>. x<p><i>-</i> x",
	"<pre>a\n\n\n\nb  \n\n c</pre>", "<p>a<br><br><br>b<p>c <br> <br> d<br>", "<ul><li>a<ul><li>1. b</ul><li>- c</ul>", "<p>\u0663. x<p>é. y<p>\u00a0- z",
	"<input>a<textarea>b</textarea>c<iframe>d</iframe>e<!-- f -->g<meta>h", "<del>a</del> <a href='/x'>[y] - 1. *</a>", "", "  ", "a\x00b",
	"<blockquote>- a<p>b</blockquote>", "<p>a</p>   \n\n\n   <p>b", "<a href=x>]</a>", "<p>a.<p>.<p>).<p>1).2.",
}

// The faster base changes nothing in what comes out.
func TestMarkdownIsTheConverters(t *testing.T) {
	for _, page := range awkward {
		sameMarkdown(t, page, []byte(page))
	}
	pages, err := filepath.Glob(shared.Dir(t, "data/readability") + "/*/source.html")
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, p := range pages {
		sameMarkdown(t, p, read(t, p))
	}
}

func FuzzMarkdownIsTheConverters(f *testing.F) {
	for _, page := range awkward {
		f.Add(page)
	}
	f.Fuzz(func(t *testing.T, page string) {
		if len(page) > 4<<10 {
			t.Skip()
		}
		sameMarkdown(t, "fuzz", []byte(strings.ToValidUTF8(page, "?")))
	})
}
