package mcp

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

func init() {
	// A server that never looks at its input, and a host that starts it.
	programs["deaf"] = func() int {
		file := os.Getenv("FAKE_PID")
		_ = os.WriteFile(file+".new", fmt.Append(nil, os.Getpid()), 0o600)
		_ = os.Rename(file+".new", file)
		time.Sleep(10 * time.Minute)
		return 0
	}
	programs["host"] = func() int {
		c := NewClient(Options{Runner: &reach.Runner{}})
		err := c.Add(Server{
			Name: "deaf", Command: os.Args[0], Dir: os.TempDir(), Env: []string{"FAKE_MCP=deaf", "FAKE_PID=" + os.Getenv("FAKE_PID")},
			Rights: policy.Rights{Grants: policy.Unlimited()}, Startup: time.Hour,
		})
		if err == nil {
			err = c.Connect(context.Background(), "deaf")
		}
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
}

// A host that is killed ends nobody itself; its servers end all the same.
func TestKilledHost(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	host := exec.Command(os.Args[0])
	host.Env = append(os.Environ(), "FAKE_MCP=host", "FAKE_PID="+file)
	host.Stderr = os.Stderr
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	var pid string
	wait(t, func() bool {
		b, err := os.ReadFile(file)
		pid = string(b)
		return err == nil
	})
	proc := "/proc/" + pid
	t.Cleanup(func() {
		if _, err := os.Stat(proc); err == nil {
			_ = exec.Command("kill", "-9", pid).Run()
		}
	})
	runs := func() bool { // a zombie waits for whoever adopted it
		b, err := os.ReadFile(proc + "/stat")
		return err == nil && !strings.Contains(string(b), ") Z ")
	}
	if !runs() {
		t.Fatal("the server does not run")
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()
	for end := time.Now().Add(time.Minute); runs(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the server outlives its host")
		}
	}
}
