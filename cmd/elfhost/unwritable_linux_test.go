package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/elfhost/elfhost/host/store"
)

// sealed is a home that can be locked, whose owner runs elfhost in it; where the tests run as root,
// who may write everywhere, that is nobody.
type sealed struct{ home, dir string }

const nobody = 65534

func newSealed(t *testing.T) sealed {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Mkdir(filepath.Join(dir, "home"), 0o755), os.Mkdir(filepath.Join(dir, "work"), 0o755)); err != nil {
		t.Fatal(err)
	}
	p := sealed{filepath.Join(dir, "home"), filepath.Join(dir, "work")}
	for name, text := range map[string]string{"t.toml": "[[turn]]\nalways = true\ntext = \"Hello there.\"\n"} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p.each(t, func(name string, _ bool) error { return p.own(name) })
	return p
}

func (p sealed) own(name string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Chown(name, nobody, nobody)
}

// each visits all of it, a folder behind what is in it.
func (p sealed) each(t *testing.T, f func(name string, dir bool) error) {
	t.Helper()
	var dirs []string
	err := filepath.WalkDir(filepath.Dir(p.home), func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			dirs = append(dirs, name)
			return nil
		}
		return f(name, false)
	})
	for i := len(dirs) - 1; i >= 0 && err == nil; i-- {
		err = f(dirs[i], true)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// lock lets nothing be written there any more, or again.
func (p sealed) lock(t *testing.T, locked bool) {
	p.each(t, func(name string, dir bool) error {
		mode := fs.FileMode(0o400)
		if dir {
			mode |= 0o100
		}
		if !locked {
			mode |= 0o200
		}
		return os.Chmod(name, mode)
	})
}

// elfhost runs a command in it.
func (p sealed) elfhost(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	c := exec.Command("/proc/self/exe", args...)
	c.Args[0] = "elfhost" // by which this binary is elfhost
	c.Dir = p.dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "ELFHOST_HOME=" + p.home}
	if os.Geteuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	var out, told bytes.Buffer
	c.Stdout, c.Stderr = &out, &told
	err = c.Run()
	return out.String(), told.String(), err
}

// TestUnwritableHome: what only reads works where nothing can be written, and
// the rest says what is wrong.
func TestUnwritableHome(t *testing.T) {
	p := newSealed(t)
	if _, told, err := p.elfhost(t, "run", "-m", "scripted/t.toml", "hello"); err != nil {
		t.Fatalf("%v: %s", err, told)
	}
	p.lock(t, true)
	t.Cleanup(func() { p.lock(t, false) })
	for want, args := range map[string][]string{
		"  hello\n":                   {"session", "list"},
		"Hello there.":                {"session", "show", "ses_"},
		`"type":"session"`:            {"session", "export", "ses_"},
		"went as recorded: 1 answers": {"session", "replay", "ses_"},
		"the audit log is whole":      {"audit", "verify"},
	} {
		if out, told, err := p.elfhost(t, args...); err != nil || !strings.Contains(out, want) {
			t.Errorf("%q: %v\n%s%s", args, err, out, told)
		}
	}
	if _, told, err := p.elfhost(t, "audit", "show"); err != nil {
		t.Errorf("audit show: %v\n%s", err, told)
	}
	for _, args := range [][]string{
		{"session", "delete", "ses_"},
		{"run", "-c", "-m", "scripted/t.toml", "more"},
		{"run", "-m", "scripted/t.toml", "more"},
	} {
		if _, told, err := p.elfhost(t, args...); err == nil || !strings.Contains(told, "E1501") || !strings.Contains(told, "hint: ") {
			t.Errorf("%q: %v\n%s", args, err, told)
		}
	}
}

// What lies beside the file, in the log of a process that is at work or was
// killed, is read too; a file whose log cannot be read is not taken for all.
func TestUnwritableHomeWithALog(t *testing.T) {
	p := newSealed(t)
	if _, told, err := p.elfhost(t, "run", "-m", "scripted/t.toml", "hello"); err != nil {
		t.Fatalf("%v: %s", err, told)
	}
	path := filepath.Join(p.home, "state", "elfhost.db")
	st, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if _, err := st.Create(t.Context(), store.Session{ID: "at_work", Origin: p.dir}); err != nil {
		t.Fatal(err)
	}
	p.lock(t, true)
	t.Cleanup(func() { p.lock(t, false) })
	out, told, err := p.elfhost(t, "session", "list")
	if err != nil || !strings.Contains(out, "  hello") || !strings.Contains(out, "at_work") {
		t.Errorf("%v\n%s%s", err, out, told)
	}
	p.lock(t, false)
	if err := os.Rename(path+"-shm", path+"-gone"); err != nil {
		t.Fatal(err)
	}
	p.lock(t, true)
	if out, told, err := p.elfhost(t, "session", "list"); err == nil || !strings.Contains(told, "E1501") {
		t.Errorf("without the log: %v\n%s%s", err, out, told)
	}
}

// Looking makes nothing.
func TestLookingMakesNothing(t *testing.T) {
	home := t.TempDir()
	t.Setenv("ELFHOST_HOME", home)
	for _, args := range [][]string{
		{"session", "list"}, {"session", "list", "--all", "--json"}, {"session", "show", "ses_"}, {"session", "export", "ses_"},
		{"session", "replay", "ses_"}, {"session", "resume"}, {"audit", "show"}, {"audit", "verify"},
	} {
		var out bytes.Buffer
		run(t.Context(), streams{in: os.Stdin, out: &out, err: &out}, args)
		if made, err := filepath.Glob(filepath.Join(home, "*")); err != nil || len(made) > 0 {
			t.Fatalf("%q made %q %v\n%s", args, made, err, &out)
		}
		if text := out.String(); args[1] != "list" && !strings.Contains(text, "E1505") && args[0] == "session" {
			t.Errorf("%q: %s", args, text)
		}
	}
}
