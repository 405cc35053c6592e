package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/elfhost/elfhost/internal/shared"
)

// The text that is extracted from real article pages is what was expected of
// them: mean F1 over white-space tokens.
func TestExtractedText(t *testing.T) {
	pages, err := filepath.Glob(shared.Dir(t, "data/readability") + "/*/source.html")
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	at := address(t, "http://fakehost/test/page.html")
	var sum float64
	for _, p := range pages {
		r := reduce(read(t, p))
		_, node := readable(parse(t, r.html), at)
		if node == nil {
			t.Errorf("%s: no article", p)
			continue
		}
		want := parse(t, read(t, filepath.Join(filepath.Dir(p), "expected.html")))
		f := f1(words(node), words(want))
		t.Logf("%-26s %.4f", filepath.Base(filepath.Dir(p)), f)
		sum += f
	}
	mean := sum / float64(len(pages))
	word := "ok"
	if mean < 0.99 {
		word = "short"
	}
	fmt.Printf("figure\twebfetch.f1\t%.4f\t>=0.99\t%s\n", mean, word) // for make bench-tools
	if mean < 0.99 {
		t.Errorf("mean F1 = %.4f, want at least 0.99", mean)
	}
}

// What the model gets has every word of the article, Markdown marks aside.
func TestMarkdownKeepsTheWords(t *testing.T) {
	dir := shared.Dir(t, "data/readability/heise")
	a := extract(read(t, dir+"/source.html"), address(t, "http://fakehost/test/page.html"))
	if a.title != "1Password für Mac generiert Einmal-Passwörter" || len(a.notes) > 0 {
		t.Errorf("title %q, notes %q", a.title, a.notes)
	}
	marks := regexp.MustCompile(`\]\([^)]*\)|[*\[\\]`)
	text := marks.ReplaceAllString(a.text, "")
	for _, w := range words(parse(t, read(t, dir+"/expected.html"))) {
		if !strings.Contains(text, marks.ReplaceAllString(w, "")) {
			t.Errorf("the Markdown lacks %q", w)
		}
	}
}

func TestMarkdown(t *testing.T) {
	long := strings.Repeat("Words that make an article long enough to be one, with commas, and so on. ", 12)
	a := extract([]byte(`<title>T</title><article><h2>Part</h2><p>`+long+`<a href="/x?a=1&amp;b=2">link</a> <del>old</del> <b>bold</b></p>
<table><tr><th>K</th><th>V</th></tr><tr><td>a</td><td>1</td></tr></table><ul><li>one<li>two</ul><pre><code>x &lt; y</code></pre>
<math alttext="E=mc^2"><mi>E</mi></math><script>evil()</script><style>p{}</style><svg><text>drawn</text></svg><!-- hidden --></article>`), address(t, "https://example.org/dir/"))
	for _, want := range []string{
		"## Part", "[link](https://example.org/x?a=1&b=2)", "~~old~~", "**bold**", "| K | V |", "| a | 1 |", "- one", "- two", "```\nx < y\n```", "`E=mc^2`",
	} {
		if !strings.Contains(a.text, want) {
			t.Errorf("no %q in\n%s", want, a.text)
		}
	}
	for _, never := range []string{"evil", "p{}", "drawn", "hidden"} {
		if strings.Contains(a.text, never) {
			t.Errorf("%q in\n%s", never, a.text)
		}
	}
}

// A list of links has no article: all of it is given, not a scrap.
func TestIndexPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("<title>News</title><body><p>Welcome to the list of today, dear reader.</p><ul>")
	for range 400 {
		b.WriteString(`<li><a href="/story">A story with a headline</a></li>`)
	}
	a := extract([]byte(b.String()), address(t, "https://example.org/"))
	if n := strings.Count(a.text, "(https://example.org/story)"); n != 400 {
		t.Errorf("%d of 400 links; notes %q", n, a.notes)
	}
}

func TestWF02DeepNesting(t *testing.T) {
	for name, page := range map[string]string{
		"div":         strings.Repeat("<div>", 100_000) + "the text",
		"table":       strings.Repeat("<table><tr><td>", 140_000) + "the text",
		"list":        strings.Repeat("<ul><li>", 60_000) + "the text",
		"unknown":     strings.Repeat("<x-y>", 100_000) + "the text",
		"format":      strings.Repeat("<b><i class=a><font color=1>", 40_000) + "the text",
		"reconstruct": strings.Repeat("<p><b id=%d><i>x", 9_000) + "the text",
		"foster":      strings.Repeat("<table><b><a href=x>", 50_000) + "the text",
		"foreign":     strings.Repeat("<svg><foreignObject><div>", 50_000) + "</svg>the text",
		"template":    "the text" + strings.Repeat("<template>", 100_000),
		"quotes":      strings.Repeat("<blockquote>", 200) + strings.Repeat("a<br>", 20_000) + "the text",
		"lists":       strings.Repeat("<ul><li>a", 200) + strings.Repeat("<li>b", 15_000) + "the text",
		"wide table":  "<table><tr>" + strings.Repeat("<td>x", 10_000) + strings.Repeat("<tr><td>b", 6_000) + "<tr><td>the text</table>",
		"spans":       "<table><tr>" + strings.Repeat("<td colspan=9 rowspan=9>x", 100) + strings.Repeat("<tr><td>b", 12_000) + "<tr><td>the text</table>",
		"wide cell":   "<table><tr><th>a<th>" + strings.Repeat("b", 200_000) + strings.Repeat("<tr><td>x<td>y", 7_000) + "<tr><td>the text</table>",
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			a := extract([]byte(page), address(t, "https://example.org/"))
			if !strings.Contains(a.text, "the text") && name != "foreign" && name != "wide table" { // there it is in what is dropped, or not in the article
				t.Errorf("the text is lost: %.200q", a.text)
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("it took %v", took)
			}
			if len(a.text) > 10*maxBytes {
				t.Errorf("%d bytes of page became %d of text", len(page), len(a.text))
			}
		})
	}
}

func TestWF03MegabytesOfTags(t *testing.T) {
	for name, page := range map[string]string{
		"p":    strings.Repeat("<p>", 1_600_000) + "the text",
		"span": strings.Repeat("<div><span>", 230_000) + "the text",
		"mix":  strings.Repeat("<p>a <b>b</b></p>", 200_000) + "the text",
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			a := extract([]byte(page), address(t, "https://example.org/"))
			if !strings.HasSuffix(a.text, "the text") || len(a.notes) == 0 {
				t.Errorf("notes %q, text ends %q", a.notes, a.text[max(0, len(a.text)-100):])
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestPlain(t *testing.T) {
	a := plain([]byte(`<title> A  title </title><script>x()</script><h1>Head</h1><p>one <b>two</b>,three &amp; four<li>item<svg><text>no</text></svg><tr><td>a<td>b</tr>`))
	if want := "# Head\none two,three & four\n- item\n| a | b"; a.text != want || a.title != "A title" {
		t.Errorf("title %q, text %q, want %q", a.title, a.text, want)
	}
}

// The reducer leaves pages that are not hostile as they are for a parser:
// the same text in the same order.
func FuzzReduce(f *testing.F) {
	for _, s := range []string{"<p>a<p>b", "<b><p>x</b>y", "<ul><li>a<li>b</ul>", "<table><tr><td>x", "<script>a</script>b", "<svg/>x", "</p></br>", "<a href='data:x'>y", "\x00<\xff>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, page string) {
		r := reduce([]byte(page))
		if len(r.html) > 7*len(page)+100 {
			t.Errorf("%d bytes became %d", len(page), len(r.html))
		}
		_ = extract([]byte(page), address(t, "https://example.org/"))
	})
}

func address(t *testing.T, s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func parse(t *testing.T, page []byte) *html.Node {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(string(page)))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func words(n *html.Node) []string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return strings.Fields(b.String())
}

func f1(got, want []string) float64 {
	count := map[string]int{}
	for _, w := range want {
		count[w]++
	}
	both := 0
	for _, w := range got {
		if count[w] > 0 {
			count[w]--
			both++
		}
	}
	if both == 0 {
		return 0
	}
	p, r := float64(both)/float64(len(got)), float64(both)/float64(len(want))
	return 2 * p * r / (p + r)
}
