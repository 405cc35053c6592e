package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEditorDies: when an editor is killed, both streams break at once. The
// agent ends, and so do the commands that it started, MCP servers among them.
// The same at Ctrl-C.
func TestEditorDies(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a POSIX shell")
	}
	self, err := exec.LookPath("elfhost") // this very program, see TestMain
	if err != nil {
		t.Fatal(err)
	}
	for name, end := range map[string]func(*exec.Cmd, io.Closer, io.Closer) error{
		"killed": func(_ *exec.Cmd, in, out io.Closer) error { out.Close(); return in.Close() },
		"ctrl-c": func(c *exec.Cmd, _, _ io.Closer) error { return c.Process.Signal(syscall.SIGINT) },
	} {
		t.Run(name, func(t *testing.T) {
			home, work := t.TempDir(), t.TempDir()
			const script = "[[turn]]\ntext = 'word word word word'\n[[turn.call]]\ntool = 'Shell'\nargs = { command = 'while :; do date +%s%N > beat; sleep 0.05; done' }\n"
			if err := os.WriteFile(filepath.Join(work, "script.toml"), []byte(script), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, "acp", "--mode", "auto", "--model", "scripted/script.toml")
			cmd.Dir, cmd.Stderr = work, os.Stderr
			cmd.Env = append(os.Environ(), "ELFHOST_HOME="+home)
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Process.Kill()
			lines := bufio.NewScanner(out)
			lines.Buffer(nil, 1<<20)
			server := fmt.Sprintf(`{"name":"slow","command":"/bin/sh","args":["-c","while :; do date +%%s%%N > %s/served; sleep 0.05; done"],"env":[]}`, work)
			fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`+"\n")
			fmt.Fprintf(in, `{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":%q,"mcpServers":[%s]}}`+"\n", work, server)
			for lines.Scan() {
				var m struct {
					ID     int `json:"id"`
					Result struct {
						SessionID string `json:"sessionId"`
					} `json:"result"`
				}
				if json.Unmarshal(lines.Bytes(), &m) == nil && m.ID == 2 {
					fmt.Fprintf(in, `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"go"}]}}`+"\n", m.Result.SessionID)
					break
				}
			}
			both := []string{filepath.Join(work, "beat"), filepath.Join(work, "served")}
			for _, f := range both {
				for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
					if _, err := os.Stat(f); err == nil {
						break
					}
					if time.Now().After(deadline) {
						t.Fatalf("%s was never written", f)
					}
				}
			}
			if err := end(cmd, in, out); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			select {
			case err := <-done:
				if err != nil && !strings.Contains(err.Error(), "exit status") {
					t.Errorf("it did not end by itself: %v", err)
				}
			case <-time.After(2 * time.Minute):
				t.Fatal("the agent goes on without its editor")
			}
			was := map[string]time.Time{}
			for _, f := range both {
				st, err := os.Stat(f)
				if err != nil {
					t.Fatal(err)
				}
				was[f] = st.ModTime()
			}
			time.Sleep(300 * time.Millisecond)
			for _, f := range both {
				if st, err := os.Stat(f); err != nil || !st.ModTime().Equal(was[f]) {
					t.Errorf("%s is still written", f)
				}
			}
		})
	}
}
