package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A host that is killed leaves nobody of its MCP servers and of its commands
// without a sandbox: not those that read no input, nor those that mind no
// SIGTERM. Nothing is left of elfhost itself either.
func TestKilledHostLeavesNobody(t *testing.T) {
	self, err := exec.LookPath("elfhost") // this very program, see TestMain
	if err != nil {
		t.Fatal(err)
	}
	home, work := t.TempDir(), t.TempDir()
	const config = `[mcp.servers.deaf]
command = "/bin/sh"
args = ["-c", "sleep 1000 & echo $! >plain; (trap '' TERM HUP; sh -c 'echo $$ >deaf; while :; do sleep 1000; done') & sleep 1000"]
startup = "10m"
`
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	host := exec.Command(self, "mcp", "test", "deaf")
	host.Dir, host.Env = work, append(os.Environ(), "ELFHOST_HOME="+home)
	host.Stderr = os.Stderr
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	await := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				_ = host.Process.Kill()
				t.Fatal(what)
			}
		}
	}
	var all []string
	for _, name := range []string{"plain", "deaf"} {
		await("no "+name+" child", func() bool {
			b, _ := os.ReadFile(filepath.Join(work, name))
			pid, whole := strings.CutSuffix(string(b), "\n")
			if whole {
				all = append(all, pid)
			}
			return whole
		})
	}
	keepers := func() (out []string) {
		list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, file := range list {
			if b, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(b), self+"\x00__sandbox\x00keeper\x00") {
				out = append(out, filepath.Base(filepath.Dir(file)))
			}
		}
		return out
	}
	if all = append(all, keepers()...); len(all) != 3 {
		t.Errorf("of %q the last should be the keeper alone", all)
	}
	if err := host.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()
	for _, pid := range all {
		await(pid+" outlives the host", func() bool { // a zombie waits for whoever adopted it
			b, err := os.ReadFile("/proc/" + pid + "/stat")
			return err != nil || strings.Contains(string(b), ") Z ")
		})
	}
}
