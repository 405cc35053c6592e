package manifest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/internal/config/strict"
)

const manifest = `abi = "elf/1"
name = "fetch"
version = "1.2.0"
publisher = "acme"

[[needs]]
cap = "net.http"
scope = ["https://api.github.com GET,POST", "public GET"]
reason = "talks to GitHub"

[[needs]]
cap = "clock.fine"

[[tools]]
name = "fetch"
description = "Fetches."
input = { type = "object", properties = { url = { type = "string" } } }
output = '{"type":"object"}'
read_only = true

[limits]
memory = "64MiB"
time = "10s"
host_calls = 100
`

func TestRead(t *testing.T) {
	m, err := Read([]byte("\xef\xbb\xbf"+manifest), "elf.toml")
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != "fetch" || len(m.Needs) != 2 || m.Needs[0].Scope[1] != "public GET" || m.Limits.Memory != 64<<20 || m.Limits.Time != 10*time.Second {
		t.Errorf("%+v", m)
	}
	if got := string(m.Tools[0].Input); got != `{"properties":{"url":{"type":"string"}},"type":"object"}` || !m.Tools[0].ReadOnly {
		t.Errorf("%s", got)
	}
}

// wantError checks that an error names its file and line, and says what.
func wantError(t *testing.T, err error, line int, says string) {
	t.Helper()
	var e *strict.Error
	if !errors.As(err, &e) {
		t.Errorf("%v (%T), want an *strict.Error that says %q", err, err, says)
		return
	}
	if e.Line != line || !strings.Contains(err.Error(), says) {
		t.Errorf("line %d: %v, want line %d and %q", e.Line, err, line, says)
	}
}

func TestManifestErrorsNameTheLine(t *testing.T) {
	for _, c := range []struct {
		old, new string
		line     int
		says     string
	}{
		{`publisher = "acme"`, `publisher = "acme`, 4, ""},
		{`publisher = "acme"`, `colour = "red"`, 4, `unknown key "colour"`},
		{`publisher = "acme"`, `name = "b"`, 4, "name"},
		{`publisher = "acme"`, `publisher = 3`, 4, "publisher"},
		{`abi = "elf/1"`, `abi = "elf/2"`, 1, "elf/2"},
		{`abi = "elf/1"`, ``, 0, "abi is missing"},
		{`name = "fetch"` + "\nversion", `name = "Fetch"` + "\nversion", 2, "lower-case"},
		{`name = "fetch"` + "\nversion", `name = "con"` + "\nversion", 2, "Windows"},
		{`cap = "net.http"`, `cap = "net.ftp"`, 7, "net.ftp"},
		{`"public GET"`, "\n\"*\"", 9, "scope"},
		{`["https://api.github.com GET,POST", "public GET"]`, `[1]`, 8, "scope"},
		{`["https://api.github.com GET,POST", "public GET"]`, `[]`, 8, "needs a scope"},
		{`reason =`, `reson =`, 9, "reson"},
		{`memory = "64MiB"`, `memory = 64`, 22, ""},
		{`memory = "64MiB"`, `memory = "64MB"`, 22, "64MB"},
		{`time = "10s"`, `time = "-1s"`, 23, "duration"},
		{`time = "10s"`, `time = "soon"`, 23, "duration"},
		{`host_calls = 100`, `host_calls = -1`, 24, "negative"},
		{`host_calls = 100`, `host_calls = 1e99`, 24, ""},
		{`'{"type":"object"}'`, `'[1]'`, 18, "JSON"},
		{`name = "fetch"` + "\ndescription", `name = "a b"` + "\ndescription", 14, "tool name"},
	} {
		src := strings.Replace(manifest, c.old, c.new, 1)
		if src == manifest {
			t.Fatalf("%q is not in the manifest", c.old)
		}
		_, err := Read([]byte(src), "elf.toml")
		wantError(t, err, c.line, c.says)
	}
}

func TestHostileTOML(t *testing.T) {
	for name, src := range map[string]string{
		"brackets":   "a = " + strings.Repeat("[", 100_000),
		"tables":     "a = " + strings.Repeat("{a=", 100_000),
		"dotted":     strings.Repeat("a.", 400_000) + "a = 1",
		"long names": "[" + strings.Repeat("a", 500_000) + "]\n" + strings.Repeat("a=1\n", 1000),
		"50 MB":      strings.Repeat("# padding\n", 5_000_000),
		"utf-16":     "\xff\xfea\x00",
		"invalid":    "name = \"\xff\"",
		"nul":        "name = \"a\x00\"",
		"keys":       strings.Repeat("a=1\n", 200_000),
	} {
		start := time.Now()
		_, err := Read([]byte(src), "elf.toml")
		var e *strict.Error
		if !errors.As(err, &e) || e.File != "elf.toml" {
			t.Errorf("%s: %v", name, err)
		}
		if len(err.Error()) > 4<<10 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
		if d := time.Since(start); d > 30*time.Second {
			t.Errorf("%s took %v", name, d)
		}
	}
}

func TestOwnManifestsAreValid(t *testing.T) {
	files, _ := filepath.Glob("../../plugins/*/elf.toml")
	more, _ := filepath.Glob("../../examples/*/elf.toml")
	for _, f := range append(files, more...) {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Read(b, f); err != nil {
			t.Error(err)
		}
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(manifest))
	f.Add([]byte("abi='elf/1'\n[[needs]]\ncap='fs.read'\nscope=['/ws/{a,b}/**']"))
	f.Add([]byte("[a.b]\n[[a.c]]\n[a.c.d]\nx=[{y=[1,\n2]}]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Read(b, "elf.toml")
		if err == nil && (m.ABI != abi.Version || abi.CheckName(m.Name) != nil) {
			t.Errorf("accepted %q", b)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "elf.toml:") {
			t.Errorf("the error does not name the file: %v", err)
		}
	})
}

func TestNeedsHash(t *testing.T) {
	a := []abi.Need{{Cap: abi.FSRead, Scope: []string{"/a", "/b"}, Reason: "x"}, {Cap: abi.KV, Scope: []string{"1MiB"}}}
	b := []abi.Need{{Cap: abi.KV, Scope: []string{"1MiB"}}, {Cap: abi.FSRead, Scope: []string{"/b", "/a"}, Reason: "y"}}
	if NeedsHash(a) != NeedsHash(b) {
		t.Error("order and reasons count")
	}
	for _, c := range [][]abi.Need{nil, a[:1], {{Cap: abi.FSWrite, Scope: []string{"/a", "/b"}}, a[1]}, {{Cap: abi.FSRead, Scope: []string{"/a/b"}}, a[1]}} {
		if NeedsHash(c) == NeedsHash(a) {
			t.Errorf("%+v has the hash of %+v", c, a)
		}
	}
}
