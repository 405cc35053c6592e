package npm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
)

func archive(t *testing.T, files ...string) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f, Mode: 0o644, Size: int64(len(f)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f)); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	z.Close()
	return &b
}

func TestPick(t *testing.T) {
	two := []string{"package/package.json", "package/out/tree-sitter-c.wasm", "package/out/tree-sitter-dart.wasm"}
	for _, c := range []struct {
		files     []string
		file      string
		want, err string
	}{
		{two, "dart", "package/out/tree-sitter-dart.wasm", ""},
		{two, "tree-sitter-c", "package/out/tree-sitter-c.wasm", ""},
		{two, "", "", "after a #: c, dart"},
		{two, "swift", "", "after a #: c, dart"},
		{two[:2], "", "package/out/tree-sitter-c.wasm", ""},
		{two[:1], "", "", "no .wasm file"},
	} {
		name, data, err := Pick(archive(t, c.files...), c.file)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v %q: %v", c.files, c.file, err)
			}
		} else if err != nil || name != c.want || string(data) != c.want {
			t.Errorf("%v %q: %q, %q, %v", c.files, c.file, name, data, err)
		}
	}
}

func TestParse(t *testing.T) {
	for in, want := range map[string]Spec{
		"npm:tree-sitter-go":                            {"tree-sitter-go", "", ""},
		"npm:@repomix/tree-sitter-wasms@0.1.17#c_sharp": {"@repomix/tree-sitter-wasms", "0.1.17", "c_sharp"},
	} {
		got, ok, err := Parse(in)
		if !ok || err != nil || got != want || got.String() != in {
			t.Errorf("%s: %+v %v %v", in, got, ok, err)
		}
	}
	for _, bad := range []string{"npm:", "npm:--registry=http://x", "npm:../x", "npm:a b", "npm:a#../b", "npm:git+ssh://x", "npm:a@^1 || 2"} {
		if _, ok, err := Parse(bad); !ok || err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	if _, ok, _ := Parse("grammar.wasm"); ok {
		t.Error("a file is not a package")
	}
}

func FuzzPick(f *testing.F) {
	f.Add([]byte("\x1f\x8b"), "c")
	f.Fuzz(func(t *testing.T, b []byte, file string) { _, _, _ = Pick(bytes.NewReader(b), file) })
}
