// Package frontmatter reads Markdown files that begin with a block of YAML
// between two lines of "---": skills, agent definitions, slash commands.
//
// Such files are written by hand and by models, for many programs, and half of
// them are not quite YAML. The reader takes what can be understood, key by
// key, and says in a warning what it did. It gives no file a meaning that its
// author cannot have had: a key that stays unreadable is missing, with a warning.
package frontmatter

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits. The files are sent to models, so that a sane one is far below them.
const (
	MaxFile  = 1 << 20  // of a whole file, in bytes
	MaxBlock = 16 << 10 // of the YAML
)

// Document is a file that was read.
type Document struct {
	Fields   Fields
	Has      bool     // there is a block of YAML, even if it is empty
	Body     string   // what follows the block, with \n for every end of line
	Line     int      // of the body's first line in the file, from 1
	Warnings []string // one clause each, without a final period
}

// ErrNotText is returned for a file that cannot be text for a model.
var ErrNotText = errors.New("it is not UTF-8 text")

// Parse reads a file. It fails for what is not text or too large only.
func Parse(b []byte) (Document, error) {
	if len(b) > MaxFile {
		return Document{}, fmt.Errorf("it is over %d KiB", MaxFile>>10)
	}
	var d Document
	if rest, ok := bytes.CutPrefix(b, []byte("\ufeff")); ok {
		b = rest
		d.warn("it begins with a byte order mark")
	}
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return Document{}, ErrNotText
	}
	text := string(b)
	if strings.Contains(text, "\r") {
		text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	}
	block, body, line, has := d.split(text)
	d.Body, d.Line, d.Has = body, line, has
	if has {
		d.read(block)
	}
	return d, nil
}

func (d *Document) warn(format string, args ...any) {
	if len(d.Warnings) < maxWarnings {
		d.Warnings = append(d.Warnings, fmt.Sprintf(format, args...))
	}
}

// maxWarnings keeps a hostile file from filling a listing.
const maxWarnings = 12

// split finds the block. Only the first closing line ends it: later ones are
// rules of the Markdown.
func (d *Document) split(text string) (block, body string, line int, has bool) {
	rest, skipped := text, 0
	for {
		l, after, more := strings.Cut(rest, "\n")
		if strings.TrimSpace(l) != "" || !more {
			break
		}
		rest, skipped = after, skipped+1
	}
	first, after, _ := strings.Cut(rest, "\n")
	if !fence(first) {
		return "", text, 1, false
	}
	if skipped > 0 {
		d.warn("there are empty lines before the first ---")
	}
	n := skipped + 1
	from := after
	for pos := 0; pos < len(after); {
		l, _, _ := strings.Cut(after[pos:], "\n")
		n++
		next := min(pos+len(l)+1, len(after))
		if fence(l) || strings.TrimRight(l, " \t") == "..." {
			return from[:pos], after[next:], n + 1, true
		}
		pos = next
	}
	return d.unclosed(after, skipped+1)
}

func fence(line string) bool { return strings.TrimRight(line, " \t") == "---" }

// unclosed takes the lines that still look like keys for the block of a file
// whose block never ends.
func (d *Document) unclosed(text string, line int) (block, body string, n int, has bool) {
	pos := 0
	for pos < len(text) {
		l, _, _ := strings.Cut(text[pos:], "\n")
		if _, _, ok := topKey(l); !ok && !strings.HasPrefix(l, " ") && !strings.HasPrefix(l, "\t") && !strings.HasPrefix(l, "- ") {
			break
		}
		pos = min(pos+len(l)+1, len(text))
		line++
	}
	if pos == 0 {
		d.warn("the first line opens a block of fields that has none")
		return "", text, line + 1, false
	}
	d.warn("the block of fields has no closing ---")
	return text[:pos], text[pos:], line + 1, true
}

// read fills Fields: as YAML if it is, else key by key.
func (d *Document) read(block string) {
	if len(block) > MaxBlock {
		d.warn("the block of fields is over %d KiB and was cut", MaxBlock>>10)
		block = block[:strings.LastIndexByte(block[:MaxBlock], '\n')+1]
	}
	v, err := parseYAML(block, &d.Warnings)
	if err == nil {
		switch v := v.(type) {
		case nil:
			return
		case Fields:
			d.Fields = v
			return
		}
		err = errors.New("it is not a list of keys")
	}
	d.piecewise(block, err)
}
