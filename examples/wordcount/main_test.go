package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/elfhost/elfhost/pdk/pdktest"
)

func TestWordcount(t *testing.T) {
	h := pdktest.New(t)
	if err := os.WriteFile(filepath.Join(h.Dir, "a.txt"), []byte("one two\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		`{"paths":["a.txt"]}`:                `{"total":3,"files":{"a.txt":3}}`,
		`{"paths":["a.txt"],"unit":"lines"}`: `{"total":2,"files":{"a.txt":2}}`,
		`{"paths":["b.txt"]}`:                `There is no file "b.txt" in the workspace.`,
	} {
		if got := h.Call("wordcount", in).Text(); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	if len(h.Progress()) == 0 {
		t.Error("no progress was reported")
	}
}

// TestCases runs testdata/cases natively.
func TestCases(t *testing.T) { pdktest.Cases(t) }
