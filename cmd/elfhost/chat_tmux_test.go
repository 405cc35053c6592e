//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestChatUnderTmux looks at the screen of a real terminal emulator: what
// moved has left no traces, and rows break where words do.
func TestChatUnderTmux(t *testing.T) {
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("tmux is not installed")
	}
	home, dir := chatPlace(t)
	socket := fmt.Sprintf("elfhost-test-%d", os.Getpid())
	run := func(args ...string) string {
		t.Helper()
		c := exec.Command(tmux, append([]string{"-L", socket, "-f", "/dev/null"}, args...)...)
		c.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TERM=xterm-256color")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %q: %v: %s", args, err, out)
		}
		return string(out)
	}
	run("new-session", "-d", "-x", "40", "-y", "30", "-c", dir,
		fmt.Sprintf("env -u NO_COLOR ELFHOST_HOME=%s LC_ALL=C.UTF-8 %s chat -m scripted/t.toml; echo and that was all; sleep 600", home, elfhostProgram(t)))
	t.Cleanup(func() { _ = exec.Command(tmux, "-L", socket, "kill-server").Run() })
	screen := func(until string) string {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
			s := run("capture-pane", "-p")
			if strings.Contains(s, until) {
				return s
			}
			if time.Now().After(end) {
				t.Fatalf("%q does not come to the screen:\n%s", until, s)
			}
		}
	}
	screen("\n>")
	run("send-keys", "look", "Enter")
	s := screen("It says hello.\n>")
	for _, want := range []string{"> look\nLook\nI look at it.\n· Read notes.txt\n", "hello"} {
		if !strings.Contains(s, want) {
			t.Errorf("the screen lacks %q:\n%s", want, s)
		}
	}
	if strings.ContainsAny(s, "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏") {
		t.Errorf("the status line left traces:\n%s", s)
	}
	// Wide characters over several rows, and the cursor back in the first.
	run("send-keys", "-l", "echo 漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字 end")
	screen("漢字 end")
	run("send-keys", "Home")
	run("send-keys", "-l", "x")
	s = screen("> xecho")
	if n := strings.Count(s, "echo 漢"); n != 1 {
		t.Errorf("the line is on the screen %d times:\n%s", n, s)
	}
	run("send-keys", "C-c")
	run("send-keys", "C-d")
	screen("to go on: elfhost chat -r")
	screen("and that was all") // what still writes to its home would be in the way of its removal
}
