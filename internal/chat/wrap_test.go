package chat

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"github.com/elfhost/elfhost/internal/term"
)

func TestPieces(t *testing.T) {
	for in, want := range map[string]string{
		"":             "",
		"word":         "word",
		"你好，世界。":       "你|好，|世|界。",
		"「引用」です":       "「引|用」|で|す",
		"文件a.go里":      "文|件|a.go|里",
		"не-кириллица": "не-кириллица",
		"カード":          "カー|ド",
		"か\u3099き":     "か\u3099|き",
		"👩\u200d💻ok":   "👩\u200d💻ok",
	} {
		if got := strings.Join(pieces(in), "|"); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Nothing is wider than the window, and nothing is lost.
func TestWrap(t *testing.T) {
	han := strings.Repeat("这是一个没有空格的很长的句子，", 12)
	words := "  " + strings.Repeat("some words ", 20)
	for _, text := range []string{han, words, "short", "", "one\n" + han + "\n  " + han} {
		for _, width := range []int{20, 33, 80} {
			got := wrap(text, width)
			for _, l := range strings.Split(got, "\n") {
				if w := ansi.StringWidth(strings.TrimRight(l, " ")); w > width {
					t.Errorf("width %d: a line of %d columns: %q", width, w, l)
				}
				if l != "" && strings.ContainsRune(noBegin, []rune(l)[0]) {
					t.Errorf("a line begins with %q", l)
				}
			}
			strip := strings.NewReplacer("\n", "", " ", "").Replace
			if strip(got) != strip(text) {
				t.Errorf("width %d: %q became %q", width, text, got)
			}
		}
	}
	if got := wrap("  "+strings.Repeat("ab ", 10), 20); !strings.Contains(got, "\n  ab") {
		t.Errorf("the indent is lost: %q", got)
	}
	if long := strings.Repeat("x", 100); wrap(long, 40) != long || wrap("a b", 0) != "a b" {
		t.Error("what cannot be broken is")
	}
}

func TestMarkdownWrapsChinese(t *testing.T) {
	var b strings.Builder
	m := &markdown{out: &b, style: term.Style{Color: true, Width: 40}}
	m.Write("- " + strings.Repeat("这是一个没有空格的很长的句子，", 10) + "\n")
	m.Close()
	lines := strings.Split(strings.TrimRight(ansi.Strip(b.String()), "\n"), "\n")
	if len(lines) < 8 {
		t.Errorf("%d lines", len(lines))
	}
	for i, l := range lines {
		if w := ansi.StringWidth(l); w > 40 || i > 0 && !strings.HasPrefix(l, "  ") {
			t.Errorf("%d columns: %q", w, l)
		}
	}
}
