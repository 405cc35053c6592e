//go:build unix

package main

import (
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/creack/pty"

	"github.com/elfhost/elfhost/skillhub/keep"
)

// netModule imports elf:net and answers "hello".
const netModule = "0061736d0100000001140360017f017f60047f7f7f7f017e60027f7f017f02100107656c663a6e65740468747470000203030200010503010001072103066d656d6f7279020009656c665f616c6c6f63000108656c665f63616c6c00020a110205004180200b0900428680808080020b0b0c010041100b060068656c6c6f"

const sayManifest = `abi = "elf/1"
name = "say"
version = "1.0.0"
[[needs]]
cap = "net.http"
scope = ["https://a.example GET", "https://b.example GET,POST", "https://c.example GET"]
reason = "it fetches"
[[tools]]
name = "say"
description = "Say hello"
`

// buys starts `elfhost install` in a terminal.
func buys(t *testing.T, home, dir string) *talk {
	t.Helper()
	wasm, err := hex.DecodeString(netModule)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"elf.toml": []byte(sayManifest), "plugin.wasm": wasm} {
		if err := os.MkdirAll(filepath.Join(dir, "say"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "say", name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k := &talk{t: t, home: home, dir: dir, end: make(chan error, 1)}
	k.cmd = exec.Command(elfhostProgram(t), "install", "./say")
	k.cmd.Dir = dir
	k.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "ELFHOST_HOME=" + home, "TERM=xterm-256color"}
	if k.ptm, err = pty.StartWithSize(k.cmd, &pty.Winsize{Rows: 50, Cols: 120}); err != nil {
		t.Skipf("no pseudo terminal here: %v", err)
	}
	go k.watch()
	t.Cleanup(func() {
		_ = k.cmd.Process.Kill()
		<-k.end
		_ = k.ptm.Close()
	})
	return k
}

// answers waits for one question among others and answers it.
func (k *talk) answers(question, keys string) {
	k.t.Helper()
	k.sees(question)
	k.answer(keys)
}

func TestInstallAsksAPerson(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	k := buys(t, home, dir)
	k.answers("install say 1.0.0", "2")
	k.answers("1 of 3: net.http https://a.example GET", "1")
	k.answers("2 of 3: net.http https://b.example GET,POST", "2")
	k.sees("Enter: none): ")
	k.types("https://b.example/v1/** GET\r")
	k.answers("3 of 3: net.http https://c.example GET", "") // Enter is no
	k.sees("2 of 3 scopes granted")
	if code := k.leaves(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	l, err := keep.ReadLock(filepath.Join(home, keep.LockName))
	if err != nil {
		t.Fatal(err)
	}
	p, ok := l.Find("say")
	if want := []string{"net.http https://a.example GET", "net.http https://b.example/v1/** GET"}; !ok || !slices.Equal(p.Grants, want) {
		t.Errorf("elfhost.lock gives %+v, want %q", p, want)
	}
}

func TestInstallsDefaultIsNo(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	k := buys(t, home, dir)
	k.answers("install say 1.0.0", "")
	k.sees("say was not installed")
	if code := k.leaves(); code != 3 {
		t.Errorf("exit status %d", code)
	}
	if l, err := keep.ReadLock(filepath.Join(home, keep.LockName)); err != nil || len(l.Packages) != 0 {
		t.Errorf("it is in elfhost.lock: %+v, %v", l, err)
	}
	if left, _ := os.ReadDir(filepath.Join(home, "state", "packages", "tmp")); len(left) != 0 {
		t.Errorf("%d stages stay", len(left))
	}
}
