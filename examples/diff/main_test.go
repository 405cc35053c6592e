package main

import (
	"os"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/pdk/pdktest"
)

func TestDiff(t *testing.T) {
	h := pdktest.New(t)
	for name, text := range map[string]string{
		"a.txt": "one\ntwo\nthree\n", "b.txt": "one\n2\nthree\nfour\n", "crlf.txt": "one\r\ntwo  \r\nthree\r\n", "bin": "\x00\x01",
	} {
		if err := os.WriteFile(h.Path("/ws/"+name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ args, want string }{
		{`{"old":{"path":"a.txt"},"new":{"path":"/ws/b.txt"}}`, "--- a.txt\n+++ /ws/b.txt\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n three\n+four\n\n2 lines added, 1 removed."},
		{`{"old":{"path":"a.txt"},"new":{"path":"b.txt"},"context":0}`, "@@ -2 +2 @@\n-two\n+2\n"},
		{`{"old":{"path":"a.txt"},"new":{"path":"b.txt"},"stat":true}`, "2 lines added, 1 removed."},
		{`{"old":{"path":"a.txt"},"new":{"path":"a.txt"}}`, "the same, byte for byte"},
		{`{"old":{"path":"a.txt"},"new":{"path":"crlf.txt"}}`, "3 lines added, 3 removed."},
		{`{"old":{"path":"a.txt"},"new":{"path":"crlf.txt"},"ignoreSpace":true}`, "white space only"},
		{`{"old":{"text":"  a\n"},"new":{"text":"a\n"},"ignoreSpace":true}`, "1 lines added, 1 removed."}, // indentation is not nothing
		{`{"old":{"text":"x  y\nb\n"},"new":{"text":"x y\nc  d\n"},"ignoreSpace":true}`, " x  y\n-b\n+c  d\n"},
		{`{"old":{"text":"a"},"new":{"text":"b"}}`, "\\ No newline at end of file"},
		{`{"old":{"text":""},"new":{"text":"b\n"}}`, "+b\n"},
		{`{"old":{"path":"a.txt"},"new":{"path":"bin"}}`, "first different byte is number 1."},
		{`{"old":{"path":"none"},"new":{"text":""}}`, `There is no file "none" in the workspace.`},
		{`{"old":{"path":"."},"new":{"text":""}}`, "is not a file"},
		{`{"old":{},"new":{"text":""}}`, "Give either path or text for old."},
	} {
		if got := h.Call("diff", c.args).Text(); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.args, got, c.want)
		}
	}
}

// TestCases runs testdata/cases natively.
func TestCases(t *testing.T) { pdktest.Cases(t) }
