package reach

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// probeNetlink counts links that are no loopback: the host's.
func probeNetlink() {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	if err != nil {
		return
	}
	unix.Close(fd)
	links, err := net.Interfaces()
	for _, l := range links {
		if err == nil && l.Flags&net.FlagLoopback == 0 {
			fmt.Println("netlink:" + l.Name)
			return
		}
	}
}

const hostSecret = "hunter22-of-the-host"

// TestSandbox runs every rung as whoever runs the tests, and as an ordinary
// user when that is root. The secret is in the environment from the start, as a
// key in a person's shell is.
func TestSandbox(t *testing.T) {
	if os.Getenv("ELF_SANDBOX_TEST") != "" {
		t.Run("rungs", testRungs)
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	users := map[string]*syscall.Credential{"as is": nil}
	if os.Geteuid() == 0 {
		users["nobody"] = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	for name, who := range users {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "elf-sandbox-test-")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			own := filepath.Join(dir, "reach.test")
			copyFile(t, exe, own)
			if err := os.Chmod(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(own, "-test.run=^TestSandbox$", "-test.v")
			cmd.Dir = dir
			cmd.Env = append(CleanEnv(), "ELF_SANDBOX_TEST=1", "AWS_SECRET_ACCESS_KEY="+hostSecret, "TMPDIR="+dir, "HOME="+dir)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
			out, err := cmd.CombinedOutput()
			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, "SKIP") || strings.Contains(line, "because") {
					t.Log(strings.TrimSpace(line))
				}
			}
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// cell is one rung with a folder to work in and a secret file outside it.
type cell struct {
	*testing.T
	Sandbox      Sandbox
	dir, outside string
}

func (c cell) run(command string, change func(*Program)) Exit {
	c.Helper()
	p := Program{Argv: []string{"/bin/sh", "-c", command}, Dir: c.dir, Timeout: 3 * time.Minute}
	if change != nil {
		change(&p)
	}
	r := Runner{Sandbox: c.Sandbox}
	e, err := r.Run(bg, give(c, "exec /bin/sh **"), p)
	if err != nil {
		c.Fatal(err)
	}
	return e
}

func testRungs(t *testing.T) {
	for _, kind := range []string{Bubblewrap, Namespaces, Landlock} {
		t.Run(kind, func(t *testing.T) {
			s, why, fix := try(bg, kind)
			if why != "" {
				t.Skipf("%s does not work here because %s; %s", kind, why, fix)
			}
			top := t.TempDir()
			c := cell{T: t, Sandbox: s, dir: filepath.Join(top, "ws"), outside: filepath.Join(top, "secret.txt")}
			put(t, c.outside, hostSecret)
			put(t, filepath.Join(c.dir, ".git", "hooks", "pre-commit"), "old")
			put(t, filepath.Join(c.dir, ".git", "HEAD"), "ref")
			for name, test := range map[string]func(cell){
				"Basics": basics, "SH19PID1Environment": sh19, "SH20RootSysctl": sh20, "SH21Network": sh21, "SH24ForkBomb": sh24, "Files": jailFiles, "Leftovers": leftovers,
			} {
				t.Run(name, func(t *testing.T) { c := c; c.T = t; test(c) })
			}
		})
	}
}

func basics(c cell) {
	e := c.run("echo out; echo err >&2; pwd; exit 3", nil)
	if e.Code != 3 || !strings.Contains(string(e.Output), c.dir) || e.Sandbox != c.Sandbox.Kind {
		c.Errorf("%+v %s", e, e.Output)
	}
	if e := c.run("tty; stty size", func(p *Program) { p.Pty = true }); !strings.Contains(string(e.Output), "24 80") {
		c.Errorf("pty: %+v %s", e, e.Output)
	}
	if e := c.run("head -c 2", func(p *Program) { p.Stdin = strings.NewReader("in") }); string(e.Output) != "in" {
		c.Errorf("stdin: %+v %s", e, e.Output)
	}
	if e := c.run("echo $FOO; : > /dev/null; head -c 1 /dev/urandom | wc -c", func(p *Program) { p.Env = append(CleanEnv(), "FOO=bar") }); !strings.HasPrefix(string(e.Output), "bar\n") || !strings.HasSuffix(strings.TrimSpace(string(e.Output)), "1") {
		c.Errorf("env, devices: %s", e.Output)
	}
	if e := c.run("sleep 300", func(p *Program) { p.Timeout = 50 * time.Millisecond }); !e.TimedOut || e.Wall > 2*time.Minute {
		c.Errorf("timeout: %+v", e)
	}
}

func sh19(c cell) {
	e := c.run(`cat /proc/1/environ /proc/self/environ /proc/$PPID/environ; for f in /proc/[0-9]*/environ; do cat $f; done; env`, nil)
	if strings.Contains(string(e.Output), hostSecret) {
		c.Errorf("the host's secret is seen: %q", e.Output)
	}
	if !strings.Contains(string(e.Output), "PATH=") {
		c.Errorf("nothing was seen at all: %q", e.Output)
	}
}

func sh20(c cell) {
	for _, f := range []string{"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper"} {
		e := c.run("if (: >> "+f+") 2>/dev/null; then echo WRITABLE; fi", nil)
		if len(e.Output) != 0 {
			c.Errorf("%s: %s", f, e.Output)
		}
	}
}

func sh21(c cell) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		c.Fatal(err)
	}
	defer udp.Close()
	go func() {
		b := make([]byte, 10)
		for {
			n, from, err := udp.ReadFrom(b)
			if err != nil {
				return
			}
			udp.WriteTo(b[:n], from)
		}
	}()
	name := fmt.Sprintf("@elf-test-%d-%s", os.Getpid(), c.Sandbox.Kind)
	local, err := net.Listen("unix", name)
	if err != nil {
		c.Fatal(err)
	}
	defer local.Close()
	exe, _ := os.Executable()
	probe := fmt.Sprintf("%s %s %s %s %s", exe, probeVerb, tcp.Addr(), udp.LocalAddr(), name)
	see := func(p *Program) { p.Read = []string{exe} }
	if e := c.run(probe, see); string(e.Output) != "probed\n" {
		c.Errorf("reached without a grant: %s", e.Output)
	}
	if e := c.run(probe, func(p *Program) { see(p); p.Network = true }); !strings.Contains(string(e.Output), "tcp\n") || !strings.Contains(string(e.Output), "udp\n") {
		c.Errorf("not reached with a grant: %s", e.Output)
	}
}

func sh24(c cell) {
	e := c.run("i=0; while [ $i -lt 500 ]; do sleep 300 & i=$((i+1)); done; echo all; wait", func(p *Program) { p.Pids = 100 })
	if !e.TooMany || e.TimedOut {
		c.Errorf("%+v: %.200s", e, e.Output)
	}
	if e := c.run("i=0; while [ $i -lt 40 ]; do sleep .1 & i=$((i+1)); done; wait; echo all", func(p *Program) { p.Pids = 100 }); string(e.Output) != "all\n" {
		c.Errorf("below the limit: %+v %s", e, e.Output)
	}
}

func jailFiles(c cell) {
	e := c.run("cat "+c.outside+" /etc/shadow; ls "+filepath.Dir(c.dir)+" $HOME", nil)
	if strings.Contains(string(e.Output), hostSecret) || strings.Contains(string(e.Output), "root:") || strings.Contains(string(e.Output), "secret.txt\n") && c.Sandbox.Kind != Landlock {
		c.Errorf("outside: %s", e.Output)
	}
	c.run("echo hi > new; echo x >> "+c.outside+"; echo x > /usr/elf-test; echo x > $HOME/f; mkdir -p ${TMPDIR:-/tmp}/x", nil)
	if got, err := os.ReadFile(filepath.Join(c.dir, "new")); string(got) != "hi\n" {
		c.Errorf("inside: %q, %v", got, err)
	}
	if got, _ := os.ReadFile(c.outside); string(got) != hostSecret {
		c.Errorf("outside: %q", got)
	}
	if _, err := os.Stat("/usr/elf-test"); err == nil {
		os.Remove("/usr/elf-test")
		c.Error("/usr was written")
	}
	if e := c.run("echo x > ro && echo WRITTEN", func(p *Program) { p.ReadOnly = true }); strings.Contains(string(e.Output), "WRITTEN") {
		c.Errorf("read-only: %s", e.Output)
	}
	if e := c.run("cat "+c.outside, func(p *Program) { p.Read = []string{c.outside} }); string(e.Output) != hostSecret {
		c.Errorf("granted: %s", e.Output)
	}
	if c.Sandbox.Kind == Landlock {
		return // see landlock_linux.go: rules only add
	}
	c.run("echo new > .git/hooks/pre-commit; mv .git/hooks x; echo ref2 > .git/HEAD", nil)
	if got, err := os.ReadFile(filepath.Join(c.dir, ".git/hooks/pre-commit")); string(got) != "old" {
		c.Errorf("a protected name was written: %q, %v", got, err)
	}
	if got, _ := os.ReadFile(filepath.Join(c.dir, ".git/HEAD")); string(got) != "ref2\n" {
		c.Errorf("an ordinary name was not: %q", got)
	}
}

func leftovers(c cell) {
	beat := filepath.Join(c.dir, "beat")
	e := c.run("(setsid sh -c 'while :; do echo x >> "+beat+"; sleep .05; done' &) ; while ! [ -s "+beat+" ]; do sleep .05; done; echo done", nil)
	if string(e.Output) != "done\n" || e.TimedOut {
		c.Errorf("%+v %s", e, e.Output)
	}
	size := func() int64 {
		info, err := os.Stat(beat)
		if err != nil {
			c.Fatal(err)
		}
		return info.Size()
	}
	was := size()
	time.Sleep(time.Second)
	if now := size(); now != was {
		c.Errorf("a process outlived its sandbox: it wrote %d bytes", now-was)
	}
}
