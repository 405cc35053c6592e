package outline

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/sandbox/compile"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Verb {
		os.Exit(Child(os.Stdin, os.Stdout, os.Stderr))
	}
	if len(os.Args) > 1 && os.Args[1] == compile.Verb {
		os.Exit(compile.Child(os.Args[2:], os.Stdin, os.Stderr))
	}
	if len(os.Args) > 3 && os.Args[1] == "__confined" {
		os.Exit(confined(os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// desk is a folder with the tool over it.
type desk struct {
	*testing.T
	dir string
	*Outline
}

func newDesk(t *testing.T, o Options) *desk {
	t.Helper()
	dir := t.TempDir()
	tree, err := reach.NewTree(reach.Mount{Name: policy.Workspace, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	o.Tree = tree
	if o.Self == "" {
		o.Self = os.Args[0]
	}
	d := &desk{t, dir, New(o)}
	t.Cleanup(func() { d.Close(); tree.Close() })
	return d
}

func (d *desk) write(name, text string) {
	d.Helper()
	p := filepath.Join(d.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		d.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		d.Fatal(err)
	}
}

func (d *desk) call(ctx context.Context, args map[string]any) (abi.Result, error) {
	d.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		d.Fatal(err)
	}
	g, err := policy.New("test", policy.Grant{Cap: abi.FSRead, Scope: []string{"/ws/**"}})
	if err != nil {
		d.Fatal(err)
	}
	return d.Tools()[0].Call(ctx, host.Call{ID: "1", Tool: "file_outline", Args: raw, Rights: policy.Rights{Grants: g}})
}

// answers wants something in an answer. A desk with a short Timeout may not
// come so far at once on a busy machine.
func (d *desk) answers(name, text, want string) {
	d.Helper()
	var got string
	for range 50 {
		if got = d.outlineOf(name, text); strings.Contains(got, want) {
			return
		}
	}
	d.Errorf("%s: %s", name, got)
}

// outlineOf gives the tool's answer about a text.
func (d *desk) outlineOf(name, text string) string {
	d.Helper()
	d.write(name, text)
	ctx, cancel := context.WithTimeout(d.Context(), 2*time.Minute)
	defer cancel()
	res, err := d.call(ctx, map[string]any{"path": name})
	if err != nil {
		d.Fatal(err)
	}
	return res.Text()
}

// TestSamples holds the whole answer about a file of each language that has a
// native parser, and Markdown.
func TestSamples(t *testing.T) {
	needNative(t)
	d := newDesk(t, Options{})
	samples, err := filepath.Glob("testdata/samples/sample.*")
	if err != nil || len(samples) < 20 {
		t.Fatal(samples, err)
	}
	for _, s := range samples {
		if filepath.Ext(s) == ".golden" {
			continue
		}
		t.Run(filepath.Base(s), func(t *testing.T) { golden(t, d, s) })
	}
}

// golden compares the answer about a sample with the file beside it.
func golden(t *testing.T, d *desk, sample string) {
	t.Helper()
	src, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	got := d.outlineOf(filepath.Base(sample), string(src))
	if *update {
		if err := os.WriteFile(sample+".golden", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(sample + ".golden")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if strings.Contains(got, "Note:") {
		t.Errorf("the sample does not parse without an error")
	}
}
