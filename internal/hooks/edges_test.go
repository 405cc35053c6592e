package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/internal/config"
)

// A hook is a program that may log what it is told: no secret is in it.
func TestNoSecretInAnEvent(t *testing.T) {
	out := filepath.Join(t.TempDir(), "event")
	r, h, _, _ := open(t, nil, config.Hook{Event: BeforeTool, Command: []string{script(t, `cat > "$1"`), out}})
	h.Scrub = func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("hunter2"), []byte("[secret]")) }
	write(r, "hunter2")
	if b, err := os.ReadFile(out); err != nil || bytes.Contains(b, []byte("hunter2")) || !json.Valid(b) {
		t.Errorf("%s %v", b, err)
	}
}

// Who leaves after a call was made does not keep its hooks from being told.
func TestAfterACancelledCall(t *testing.T) {
	out := filepath.Join(t.TempDir(), "told")
	_, h, _, notes := open(t, nil, config.Hook{Event: AfterTool, Command: []string{script(t, `touch "$1"`), out}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.After(ctx, tool{"Write", nil}.Spec(), host.Call{Tool: "Write", Args: json.RawMessage(`{}`)}, abi.Text("done"))
	if _, err := os.Stat(out); err != nil || len(*notes) > 0 {
		t.Errorf("%v, notes %q", err, *notes)
	}
}

func TestGuards(t *testing.T) {
	for match, want := range map[string]bool{"": true, "Web*": true, "WebSearch(a/**)": true, "Write": false} {
		_, h, _, _ := open(t, nil, config.Hook{Event: BeforeTool, Match: match, Command: []string{"x"}})
		if h.Guards("WebSearch") != want {
			t.Errorf("%q: %v", match, !want)
		}
	}
	if _, h, _, _ := open(t, nil, config.Hook{Event: AfterTool, Command: []string{"x"}}); h.Guards("WebSearch") {
		t.Error("a hook after calls guards nothing")
	}
}

// A hook without a limit has one all the same.
func TestDefaultTimeout(t *testing.T) {
	if _, h, _, _ := open(t, nil, config.Hook{Event: Stop, Command: []string{"x"}}); h.all[0].Timeout.Duration != defaultTimeout {
		t.Errorf("%v", h.all[0].Timeout)
	}
}

func TestHomeOfACommand(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	if got := command([]string{"~/bin/guard", "~/x"}); got[0] != filepath.Join(home, "bin", "guard") || got[1] != "~/x" {
		t.Errorf("%q", got)
	}
}

// A relative program would be the project's to supply.
func TestNoProgramOfTheProject(t *testing.T) {
	r, h, ran, _ := open(t, nil, config.Hook{Event: BeforeTool, Command: []string{"./guard"}})
	if err := os.WriteFile(filepath.Join(h.Dir, "guard"), []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if res := write(r, "a"); *ran > 0 || !strings.Contains(res.Text(), "neither absolute nor a plain name") {
		t.Errorf("%s", res.Text())
	}
}

func TestReasonsAreBounded(t *testing.T) {
	if got := line(strings.Repeat("no\n", 5000)); len(got) > maxReason+4 || strings.Contains(got, "\n") {
		t.Errorf("%d bytes", len(got))
	}
}
