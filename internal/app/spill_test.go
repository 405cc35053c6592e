package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/internal/config"
)

// Two calls may have one ID, or IDs that make one name: what the one had to say
// is not lost to the other.
func TestLongOutputsKeepTheirFiles(t *testing.T) {
	a := &App{Session: "s", Paths: config.Paths{State: t.TempDir()}}
	texts := map[string]string{}
	for i, id := range []string{"call_1", "call_1", "call.1", "../call_1", strings.Repeat("x", 100), strings.Repeat("x", 101)} {
		name, err := a.spill(t.Context(), "s", id, strings.Repeat("a", i))
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = strings.Repeat("a", i)
	}
	if len(texts) != 6 {
		t.Fatalf("6 outputs lie in %d files", len(texts))
	}
	for name, want := range texts {
		b, err := os.ReadFile(filepath.Join(a.SessionDir(), strings.TrimPrefix(name, outMount+"/")))
		if err != nil || string(b) != want {
			t.Errorf("%s: %q %v", name, b, err)
		}
	}
}
