// Diff compares two texts and shows a unified diff. It shows a tool that takes
// its input from files or from its arguments, and bounds the work beforehand.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/elfhost/elfhost/pdk"
)

const (
	maxBytes       = 8 << 20
	defaultContext = 3
)

type side struct {
	Path string  `json:"path,omitempty" desc:"A file, relative to the workspace."`
	Text *string `json:"text,omitempty" desc:"The text itself, instead of path."`
}

type args struct {
	Old         side `json:"old" desc:"What it was: {\"path\": …} or {\"text\": …}."`
	New         side `json:"new" desc:"What it is now."`
	Context     *int `json:"context,omitempty" desc:"Unchanged lines around each change." min:"0" max:"1000" default:"3"`
	IgnoreSpace bool `json:"ignoreSpace,omitempty" desc:"Treat runs of blanks and tabs alike, and ignore them at the end of a line."`
	Stat        bool `json:"stat,omitempty" desc:"Say how many lines were added and removed, and nothing else."`
}

func init() {
	pdk.Tool(pdk.Spec{
		Name: "diff", ReadOnly: true,
		Description: "Shows the difference of two files of the workspace, or of two texts, as a unified diff.",
	}, run)
}

func main() { pdk.Main() }

func run(ctx context.Context, in args) (string, error) {
	old, oldName, err := read(ctx, in.Old, "old")
	if err != nil {
		return "", err
	}
	now, newName, err := read(ctx, in.New, "new")
	if err != nil {
		return "", err
	}
	if bytes.Equal(old, now) {
		return "They are the same, byte for byte.", nil
	}
	if !utf8.Valid(old) || !utf8.Valid(now) || bytes.IndexByte(old, 0) >= 0 || bytes.IndexByte(now, 0) >= 0 {
		return fmt.Sprintf("They differ (%d and %d bytes), and at least one is not UTF-8 text, so no lines can be shown. The first different byte is number %d.",
			len(old), len(now), 1+common(old, now)), nil
	}
	a, b := string(old), string(now)
	if in.IgnoreSpace {
		if a, b = squeeze(a), squeeze(b); a == b {
			return "They differ in white space only.", nil
		}
	}
	lines := defaultContext
	if in.Context != nil {
		lines = *in.Context
	}
	edits := udiff.Lines(a, b)
	u, err := udiff.ToUnifiedDiff(oldName, newName, a, edits, lines)
	if err != nil {
		return "", err
	}
	if in.IgnoreSpace {
		restore(u, string(old), string(now))
	}
	added, removed := count(u)
	summary := fmt.Sprintf("%d lines added, %d removed.", added, removed)
	if in.Stat {
		return summary, nil
	}
	return u.String() + "\n" + summary, nil
}

func read(ctx context.Context, s side, what string) (text []byte, name string, err error) {
	switch {
	case s.Text != nil && s.Path == "":
		if len(*s.Text) > maxBytes {
			return nil, "", tooLong(what, int64(len(*s.Text)))
		}
		return []byte(*s.Text), what, nil
	case s.Path == "" || s.Text != nil:
		return nil, "", pdk.Failf("Give either path or text for %s.", what)
	}
	f, err := os.Open(pdk.Path(ctx, s.Path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", pdk.Failf("There is no file %q in the workspace.", s.Path)
	case errors.Is(err, fs.ErrPermission):
		return nil, "", pdk.Failf("The file %q may not be read.", s.Path)
	case err != nil:
		return nil, "", err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, "", err
	case !info.Mode().IsRegular():
		return nil, "", pdk.Failf("%q is not a file.", s.Path)
	case info.Size() > maxBytes:
		return nil, "", tooLong(s.Path, info.Size())
	}
	text, err = io.ReadAll(io.LimitReader(f, maxBytes))
	return text, s.Path, err
}

func tooLong(name string, n int64) error {
	return pdk.Failf("%q has %d bytes; %d are compared at the most.", name, n, maxBytes)
}

// squeeze makes texts alike that differ in white space inside lines.
func squeeze(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		body := strings.TrimRight(line, "\r\n")
		indented := len(body) > 0 && (body[0] == ' ' || body[0] == '\t')
		if fields := strings.Fields(body); indented && len(fields) > 0 {
			b.WriteByte(' ')
			b.WriteString(strings.Join(fields, " "))
		} else {
			b.WriteString(strings.Join(fields, " "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// restore puts the lines as they are written in place of the squeezed ones.
func restore(u udiff.UnifiedDiff, old, now string) {
	was, is := strings.SplitAfter(old, "\n"), strings.SplitAfter(now, "\n")
	for _, h := range u.Hunks {
		i, j := h.FromLine-1, h.ToLine-1
		for n := range h.Lines {
			l := &h.Lines[n]
			switch l.Kind {
			case udiff.Insert:
				l.Content = is[j]
				j++
			case udiff.Delete:
				l.Content = was[i]
				i++
			default:
				l.Content = was[i]
				i, j = i+1, j+1
			}
		}
	}
}

func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func count(u udiff.UnifiedDiff) (added, removed int) {
	for _, h := range u.Hunks {
		for _, l := range h.Lines {
			switch l.Kind {
			case udiff.Insert:
				added++
			case udiff.Delete:
				removed++
			}
		}
	}
	return added, removed
}
