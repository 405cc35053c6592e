package main

import (
	"os"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/pdk/pdktest"
)

func TestJQ(t *testing.T) {
	h := pdktest.New(t)
	for name, text := range map[string]string{
		"a.json":   "\xef\xbb\xbf" + `{"items":[{"n":"x","p":12345678901234567890},{"n":"y","p":0.10}]}`,
		"b.jsonl":  "{\"a\":1}\n{\"a\":2}\n",
		"bad.json": "{\"a\": 1,\n oops}",
		"empty":    "",
	} {
		if err := os.WriteFile(h.Path("/ws/"+name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ args, want string }{
		{`{"filter":".items[].n","path":"a.json"}`, "\"x\"\n\"y\"\n"},
		{`{"filter":".items[].n","path":"/ws/a.json","raw":true}`, "x\ny\n"},
		{`{"filter":".items[0].p","path":"a.json"}`, "12345678901234567890\n"}, // no rounding on the way
		{`{"filter":".","json":"{\"b\":1,\"a\":[]}"}`, "{\n  \"a\": [],\n  \"b\": 1\n}\n"},
		{`{"filter":".a","path":"b.jsonl"}`, "1\n2\n"},
		{`{"filter":"map(.a) | add","path":"b.jsonl","slurp":true}`, "3\n"},
		{`{"filter":".a == $x","json":"{\"a\":7}","args":{"x":7}}`, "true\n"},
		{`{"filter":"[.,.]","json":"1","compact":true}`, "[1,1]\n"},
		{`{"filter":"empty","json":"1"}`, "no result"},
		{`{"filter":"env | length","json":"1"}`, "0\n"},
		{`{"filter":"7, halt, 8","json":"1"}`, "7\n"},
		{`{"filter":".a[","json":"1"}`, "does not parse"},
		{`{"filter":"nosuch","json":"1"}`, "cannot be used: function not defined: nosuch/0"},
		{`{"filter":"import \"m\" as m; 1","json":"1"}`, "cannot be used"},
		{`{"filter":".a","json":"[1]"}`, "failed after 0 results"},
		{`{"filter":".","path":"bad.json"}`, "line 2"},
		{`{"filter":".","path":"empty"}`, "The input is empty."},
		{`{"filter":".","path":"none.json"}`, `There is no file "none.json" in the workspace.`},
		{`{"filter":".","path":"../../etc/passwd"}`, "There is no file"},
		{`{"filter":"."}`, "Give either path or json."},
		{`{"filter":"range(1e9)","json":"1"}`, "cut after 10000 results"},
	} {
		if got := h.Call("jq", c.args).Text(); !strings.Contains(got, c.want) {
			t.Errorf("%s: %.200q, want %q", c.args, got, c.want)
		}
	}
}

// TestCases runs testdata/cases natively.
func TestCases(t *testing.T) { pdktest.Cases(t) }
