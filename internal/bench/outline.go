package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/elfhost/elfhost/builtins/outline"
)

// outlined are the parts of which a file of 10,000 lines is made, by the
// extension of its language: plain code, with a number in each name.
var outlined = []struct{ ext, part string }{
	{"go", `
// Type%[1]d is a type.
type Type%[1]d struct {
	Name string
	Next *Type%[1]d
}

// Method walks the list and adds up.
func (t *Type%[1]d) Method(limit int, names map[string]int) (sum int, err error) {
	for i, n := 0, t; n != nil && i < limit; i, n = i+1, n.Next {
		if v, ok := names[n.Name]; ok && v > 0 {
			sum += v * (i + 1)
		} else if len(n.Name) > 10 {
			return 0, fmt.Errorf("name %%q is too long", n.Name)
		}
	}
	return sum, nil
}
`},
	{"py", `
class Type%[1]d(Base):
    """A type."""

    def method(self, limit, names=None):
        """Walks the list and adds up."""
        total = 0
        for i, item in enumerate(self.items[:limit]):
            if names and item.name in names:
                total += names[item.name] * (i + 1)
            elif len(item.name) > 10:
                raise ValueError(f"name {item.name!r} is too long")
        return total


def function_%[1]d(a, b=1, *args, **kwargs):
    return [x for x in (a, b, *args) if x is not None]

`},
	{"c", `
/* A type. */
struct type_%[1]d {
	const char *name;
	struct type_%[1]d *next;
};

/* Walks the list and adds up. */
static int function_%[1]d(const struct type_%[1]d *t, int limit, int *sum)
{
	for (int i = 0; t != NULL && i < limit; i++, t = t->next) {
		if (t->name[0] == 'a' && limit > 10) {
			*sum += (i + 1) * limit;
		} else if (strlen(t->name) > 10) {
			return -1;
		}
	}
	return 0;
}
`},
}

const outlineLines = 10_000

// outlines compares file_outline with universal-ctags on one file each. Its
// worker is running, as it is in a session after the first file; ctags is
// started each time, which is how it is used.
func outlines(ctx context.Context, w io.Writer) error {
	if out, err := exec.CommandContext(ctx, "ctags", "--version").Output(); err != nil || !strings.Contains(string(out), "Universal Ctags") {
		for _, l := range outlined {
			Skipped(w, "outline.ctags."+l.ext, "<=6", "universal-ctags is not installed")
		}
		return nil
	}
	d, done, err := scratch()
	if err != nil {
		return err
	}
	defer done()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o := outline.New(outline.Options{Tree: d.tree, Self: self})
	defer o.Close()
	d.add(o.Tools())
	head := map[string]string{"go": "package a\n\nimport \"fmt\"\n"}
	for _, l := range outlined {
		var text strings.Builder
		text.WriteString(head[l.ext])
		lines := strings.Count(head[l.ext], "\n")
		for i := 0; lines < outlineLines; i++ {
			fmt.Fprintf(&text, l.part, i)
			lines += strings.Count(l.part, "\n")
		}
		name := "large." + l.ext
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text.String()), 0o644); err != nil {
			return err
		}
		Figure(w, "outline.ctags."+l.ext, d.ratio(
			func() { d.call(ctx, "file_outline", map[string]any{"path": name}) },
			func() { d.run(ctx, "ctags", "-f", "-", name) }), 6)
	}
	return d.err
}
