package compile_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/host/sandbox/compile"
)

const probeVerb = "__probe"

// probe confines itself as the compiler does, then tries what a compiler that
// was taken over would try.
func probe(dir string) int {
	if err := compile.Confine(dir); err != nil {
		fmt.Println("confine", err)
		return 1
	}
	report := func(what string, err error) {
		verdict := "refused"
		if err == nil {
			verdict = "done"
		}
		fmt.Println(what, verdict)
	}
	_, err := os.ReadFile("/etc/passwd")
	report("read", err)
	report("write", os.WriteFile(filepath.Join(filepath.Dir(dir), "escape"), nil, 0o600))
	c, err := net.Dial("udp", "127.0.0.1:9")
	if c != nil {
		c.Close()
	}
	report("network", err)
	report("exec", exec.Command("/bin/true").Run())
	report("output", os.WriteFile(filepath.Join(dir, "code"), []byte("x"), 0o600))
	return 0
}

func TestChildIsConfined(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the compiler is confined by the kernel on Linux only")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(self, probeVerb, dir).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := map[string]string{"read": "refused", "write": "refused", "network": "refused", "exec": "refused", "output": "done"}
	if _, err := os.Stat("/sys/kernel/security/landlock"); err != nil && strings.Contains(string(out), "read done") {
		t.Log("this kernel has no Landlock: files are not checked")
		delete(want, "read")
		delete(want, "write")
	}
	for line := range strings.Lines(string(out)) {
		what, verdict, _ := strings.Cut(strings.TrimSpace(line), " ")
		if w, ok := want[what]; ok && w != verdict {
			t.Errorf("%s: %s, want %s", what, verdict, w)
		}
	}
	if !strings.Contains(string(out), "output done") {
		t.Errorf("the probe did not finish: %s", out)
	}
}
