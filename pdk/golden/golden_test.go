package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{ // "": it is one
		`{"tool":"a","want":""}`:                      "",
		`{"tool":"a","error":true}`:                   "",
		`{"tool":"a","json":{"a":1}}`:                 "",
		`{"tool":"a","written":{"x":"y"}}`:            "",
		`{"tool":"a"}`:                                "expects nothing",
		`{"want":"x"}`:                                `names no "tool"`,
		`{"tool":"a","want":"x","wnat":"y"}`:          "wnat",
		`[]`:                                          "line 1",
		"{\"tool\":\"a\",\n\"want\":1}":               "line 2",
		`{"tool":"a","want":"x","files":{"../b":""}}`: "outside",
		`{"tool":"a","want":"x","copy":{"../b":"c"}}`: "outside",
		`{"tool":"a","want":"x","files":{"b":""},"copy":{"b":"c"}}`: `in "files" and in "copy"`,
		`{"tool":"a","want":"x","written":{"/etc/passwd":""}}`:      "outside",
	} {
		if _, err := Parse([]byte(text)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if c, err := Parse([]byte(`{"events":[],"tool":"a","digest":"x"}`)); err != nil || c.Recording == nil {
		t.Errorf("a recording: %+v, %v", c, err)
	}
}

// TestCopy: a case takes files of its own project, and of nothing else.
func TestCopy(t *testing.T) {
	dir := t.TempDir()
	project := filepath.Join(dir, "project")
	if err := os.MkdirAll(filepath.Join(project, Dir), 0o700); err != nil {
		t.Fatal(err)
	}
	read := func(from string) ([]Case, error) {
		t.Helper()
		for name, text := range map[string]string{
			filepath.Join(project, "a.db"): "\x00\xff", filepath.Join(dir, "secret"): "s",
			filepath.Join(project, Dir, "c.json"): `{"tool":"a","want":"","copy":{"b.db":"` + from + `"}}`,
		} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return Read(project)
	}
	c, err := read("a.db")
	if err != nil || c[0].Files["b.db"] != "\x00\xff" {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, from := range []string{"../secret", "/etc/passwd", "none", "."} {
		if c, err := read(from); err == nil {
			t.Errorf("%s: it is read: %+v", from, c)
		}
	}
}

func TestCompare(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "out"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	structured := abi.Result{Structured: []byte(`{"a":1,"b":[2]}`)}
	for _, c := range []struct {
		text   string
		result abi.Result
		want   string
	}{
		{`{"tool":"a","want":"yes"}`, abi.Text("yes"), ""},
		{`{"tool":"a","want":"yes"}`, abi.Text("no"), `want "yes"`},
		{`{"tool":"a","contains":"es"}`, abi.Text("yes"), ""},
		{`{"tool":"a","contains":"x"}`, abi.Text("yes"), "something with"},
		{`{"tool":"a","error":true}`, abi.Text("yes"), "an error is wanted"},
		{`{"tool":"a","want":"no"}`, abi.Errorf("no"), "with the error"},
		{`{"tool":"a","json":{"b":[2],"a":1}}`, structured, ""},
		{`{"tool":"a","json":{"b":[2]}}`, structured, "want {"},
		{`{"tool":"a","written":{"out":"text"}}`, abi.Text(""), ""},
		{`{"tool":"a","written":{"out":"other"}}`, abi.Text(""), `want "other"`},
		{`{"tool":"a","written":{"none":""}}`, abi.Text(""), "did not write"},
	} {
		k, err := Parse([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Compare(c.result, dir); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with %+v: %v", c.text, c.result, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"tool":"a","want":"x","files":{"a":"b"},"http":{"https://x":{"status":1}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := Parse(b); err == nil && c.Recording == nil && c.Tool == "" {
			t.Error("a case without a tool")
		}
	})
}
