package outline

import (
	"fmt"
	"strings"
)

// page is the head of an answer.
type page struct {
	file, language string
	lines          int
}

func (p page) head() string {
	return fmt.Sprintf("File: %s\nLanguage: %s\nTotal lines: %d\n", p.file, p.language, p.lines)
}

// render lays out the symbols. A text with errors is outlined as far as it
// was understood, with a note.
func (p page) render(r reply) string {
	var b strings.Builder
	b.WriteString(p.head())
	if len(r.Symbols) == 0 {
		if r.Bad > 0 {
			return b.String() + p.broken(r.Bad)
		}
		b.WriteString("No top-level symbols found in this file.\n")
		return b.String()
	}
	b.WriteString("─── Symbols ───\n")
	for _, s := range r.Symbols {
		b.WriteString(strings.Repeat("    ", s.Depth))
		b.WriteString(s.Label)
		b.WriteByte(' ')
		if s.Name == "" {
			fmt.Fprintf(&b, "(anonymous %s)", s.Label)
		} else {
			b.WriteString(s.Name)
		}
		if s.First == s.Last {
			fmt.Fprintf(&b, " (line %d)", s.First)
		} else {
			fmt.Fprintf(&b, " (lines %d-%d)", s.First, s.Last)
		}
		if s.Comment != "" {
			b.WriteString("  // ")
			b.WriteString(s.Comment)
		}
		b.WriteByte('\n')
	}
	if r.Bad > 0 {
		b.WriteString(p.broken(r.Bad))
	}
	return b.String()
}

func (p page) broken(row int) string {
	return fmt.Sprintf("Note: AST parse error: line %d is not %s that the parser understands; symbols near it may be missing.\n", row, p.language)
}

func (p page) failed(why string) string {
	return p.head() + "Note: AST parse error: " + strings.TrimSuffix(why, ".") + ".\n"
}

const notSupported = "Note: Language not supported for AST parsing.\n"

// unsupported is about an extension that nobody knows.
func (p page) unsupported(ext string) string {
	what := "This file's kind is not known."
	if ext != "" {
		what = fmt.Sprintf("Files that end in %s are not known.", line(ext))
	}
	return p.head() + notSupported + what + " A person can add a tree-sitter grammar: elfhost grammar add FILE|npm:PACKAGE\n"
}

// missing is about a language whose parser is not in this build.
func (p page) missing(l *language) string {
	return p.head() + notSupported +
		fmt.Sprintf("The parser of %s is not in this build. A person can add it: elfhost grammar add %s\n", l.name, l.pack())
}
