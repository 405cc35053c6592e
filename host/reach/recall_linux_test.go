package reach

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// What another process found is believed for a while, and until a program runs.
func TestRecallSandbox(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cache", "sandbox")
	first := RecallSandbox(t.Context(), file)
	if first.Kind == "" {
		t.Skip("no kernel sandbox works here")
	}
	if first.recalled != nil {
		t.Fatal("it was recalled from nowhere")
	}
	again := RecallSandbox(t.Context(), file)
	if again.Kind != first.Kind || again.recalled == nil || again.system != nil {
		t.Fatalf("%+v", again)
	}
	if sure := again.Verify(t.Context()); sure.Kind != first.Kind || len(sure.system) == 0 || sure.recalled != nil {
		t.Errorf("verified: %+v", sure)
	}
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	facts := sandboxFacts()
	for name, spoil := range map[string]func() error{
		"other facts": func() error { return os.WriteFile(file, []byte("x"+string(good)), 0o600) },
		"no kind":     func() error { return os.WriteFile(file, []byte(facts+" none"), 0o600) },
		"rubbish":     func() error { return os.WriteFile(file, make([]byte, 2<<10), 0o600) },
		"old":         func() error { return os.Chtimes(file, time.Time{}, time.Now().Add(-recallFor-time.Minute)) },
		"of tomorrow": func() error { return os.Chtimes(file, time.Time{}, time.Now().Add(time.Hour)) },
		"a link":      func() error { _ = os.Rename(file, file+"2"); return os.Symlink(file+"2", file) },
	} {
		_ = os.Remove(file)
		if err := os.WriteFile(file, good, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if kind := recall(file, facts); kind != "" {
			t.Errorf("%s: %q was believed", name, kind)
		}
	}
}

// A file that says what is not so makes nothing run unheld: the rungs are tried
// before the first program, and the strongest that works holds it.
func TestRecallSandboxLies(t *testing.T) {
	real := ProbeSandbox(t.Context())
	file := filepath.Join(t.TempDir(), "sandbox")
	if err := os.WriteFile(file, []byte(sandboxFacts()+" "+Landlock+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	box := RecallSandbox(t.Context(), file)
	if box.Kind != Landlock {
		t.Fatalf("%+v", box)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	box.Verify(stopped) // says nothing, and is not kept
	if got := box.Verify(t.Context()); got.Kind != real.Kind {
		t.Errorf("it runs under %q instead of %q", got.Kind, real.Kind)
	}
	if _, err := os.Stat(file); real.Kind != Landlock && !errors.Is(err, os.ErrNotExist) {
		t.Error("the lie stays")
	}
	// And where nothing works any more, nothing runs.
	gone := Sandbox{Kind: Bubblewrap, recalled: &recalled{tried: true}}
	marker := filepath.Join(t.TempDir(), "ran")
	all, err := policy.New("test", policy.Grant{Cap: abi.Exec, Scope: []string{"touch *"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&Runner{Sandbox: gone}).Run(t.Context(), policy.Rights{Grants: all}, Program{Argv: []string{"touch", marker}, Dir: t.TempDir(), Env: []string{"PATH=/usr/bin:/bin"}})
	if _, serr := os.Stat(marker); !errors.Is(err, abi.ErrUnavailable) || serr == nil {
		t.Errorf("%v; the marker: %v", err, serr)
	}
}
