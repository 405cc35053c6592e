package app

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/internal/config"
)

// A person is told what is grave, a few times a server, in a few words.
func TestHeard(t *testing.T) {
	home := t.TempDir()
	var all []string
	a, err := Open(context.Background(), Options{Dir: t.TempDir(), Env: func(n string) string { return map[string]string{"ELFHOST_HOME": home}[n] },
		Heard: func(server, level, text string) { all = append(all, text) }})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close(context.Background())
	a.Secrets.Scrub.Add("hunter2hunter2")
	a.TakeNotes()
	a.heard("s", "info", "chatter")
	a.heard("s", "stderr", "chatter")
	a.heard("s", "warning", "the key is hunter2hunter2 "+strings.Repeat("é", 500))
	for i := range 100 {
		a.heard("s", "error", fmt.Sprint("again ", i))
	}
	notes := a.TakeNotes()
	text := strings.Join(notes, "\n")
	if len(all) != 103 || len(notes) != maxHeard || strings.Contains(text+strings.Join(all, ""), "hunter2") || strings.Contains(text, "chatter") || !strings.Contains(text, "mcp test s --verbose") {
		t.Errorf("%d heard, noted:\n%s", len(all), text)
	}
	if n := len(notes[0]); n > maxHeardText+100 {
		t.Errorf("a note of %d bytes", n)
	}
}

func TestShown(t *testing.T) {
	for want, s := range map[string]config.MCPServer{
		"npx -y server .": {Command: "npx", Args: []string{"-y", "server", "."}},
		"x --token … --api-key=… --api-key … b": {Command: "x", Args: []string{"--token", "s3cret", "--api-key=s3cret", "--api-key", "s3cret", "b"}},
		"x --token ${T} --token=${T}":           {Command: "x", Args: []string{"--token", "${T}", "--token=${T}"}},
		`"a b" "" --secret=…`:                   {Command: "a b", Args: []string{"", "--secret=a b"}},
		"https://a.test/p?…":                    {URL: "https://a.test/p?key=s3cret#s3cret"},
	} {
		if got := shown(s); got != want {
			t.Errorf("%+v is shown as %s", s, got)
		}
	}
}
