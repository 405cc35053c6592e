package reach

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

func TestFS01DotDot(t *testing.T) {
	w := newWorld(t)
	var noted []error
	r := readWrite(t)
	r.Note = func(_ policy.Use, err error) { noted = append(noted, err) }
	if _, err := w.Virtual("/ws", "../canary"); !errors.Is(err, denied) {
		t.Errorf("Virtual: %v", err)
	}
	if got, err := read(w, r, "/ws/../canary"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestFS02DotDotNested(t *testing.T) {
	w := newWorld(t)
	if got, err := w.Virtual("/ws", "sub/../../canary"); !errors.Is(err, denied) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := w.Virtual("/ws/sub", "../a.txt"); err != nil || got != "/ws/a.txt" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestFS03Absolute(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"/etc/passwd", "/ws/etc/passwd"} {
		if got, err := read(w, readWrite(t), name); !errors.Is(err, fs.ErrNotExist) || errors.Is(err, denied) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := w.Virtual("/ws", "/etc/passwd"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestFS04PrefixSibling(t *testing.T) {
	w := newWorld(t)
	for _, p := range []string{"../ws-evil/f", w.dir + "-evil/f", "/ws-evil/f"} {
		if got, err := w.Virtual("/ws", p); err == nil {
			t.Errorf("%s became %s", p, got)
		}
	}
}

func TestFS05SymlinkPreexisting(t *testing.T) {
	w := newWorld(t)
	for i, target := range []string{"../canary", w.canary, "sub/../../canary", "sub/up/canary"} {
		name := "l" + string(rune('0'+i))
		link(t, target, w.host(name))
		if i == 3 {
			link(t, "../..", w.host("sub/up"))
		}
		var noted []error
		r := readWrite(t)
		r.Note = func(_ policy.Use, err error) { noted = append(noted, err) }
		if got, err := read(w, r, "/ws/"+name); !errors.Is(err, denied) {
			t.Errorf("-> %s: %q, %v", target, got, err)
		}
		if len(noted) == 0 || !errors.Is(noted[len(noted)-1], denied) {
			t.Errorf("-> %s: the denial was not noted: %v", target, noted)
		}
	}
}

// FS-06: the tree makes no links at all. One made by somebody else during the
// session, a program say, is treated as one that was there before.
func TestFS06SymlinkGuestMade(t *testing.T) {
	w := newWorld(t)
	r := readWrite(t)
	if _, err := read(w, r, "/ws/a.txt"); err != nil {
		t.Fatal(err)
	}
	link(t, "../canary", w.host("l"))
	if got, err := read(w, r, "/ws/l"); !errors.Is(err, denied) {
		t.Errorf("%q, %v", got, err)
	}
	for _, flag := range []int{os.O_WRONLY, os.O_RDWR | os.O_TRUNC, os.O_WRONLY | os.O_CREATE, os.O_WRONLY | os.O_APPEND} {
		if f, err := w.Open(bg, r, "/ws/l", flag, 0o644); !errors.Is(err, denied) {
			t.Errorf("flag %#x: %v, %v", flag, f, err)
		}
	}
	if _, err := w.WriteFile(bg, r, "/ws/l", strings.NewReader("pwned"), WriteOptions{}); !errors.Is(err, denied) {
		t.Error(err) // newWorld checks the canary
	}
}

func TestFS07SymlinkDirComponent(t *testing.T) {
	w := newWorld(t)
	link(t, "../", w.host("d"))
	if _, err := w.WriteFile(bg, readWrite(t), "/ws/d/new", strings.NewReader("x"), WriteOptions{}); !errors.Is(err, denied) {
		t.Errorf("WriteFile: %v", err)
	}
	if f, err := w.Open(bg, readWrite(t), "/ws/d/new", os.O_CREATE|os.O_WRONLY, 0o644); !errors.Is(err, denied) {
		t.Errorf("Open: %v, %v", f, err)
	}
	if err := w.Mkdir(bg, readWrite(t), "/ws/d/new", 0o755); !errors.Is(err, denied) {
		t.Errorf("Mkdir: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(filepath.Dir(w.dir), "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was made outside: %v", err)
	}
}

func TestFS08SymlinkTrailingSlash(t *testing.T) {
	w := newWorld(t)
	link(t, "../ws-evil", w.host("link"))
	r := readWrite(t)
	if _, err := w.ReadDir(bg, r, "/ws/link/"); !errors.Is(err, denied) {
		t.Errorf("ReadDir: %v", err)
	}
	for _, stat := range []func(context.Context, policy.Rights, string) (fs.FileInfo, error){w.Stat, w.Lstat} {
		if info, err := stat(bg, r, "/ws/link/"); !errors.Is(err, denied) {
			t.Errorf("stat: %v, %v", info, err)
		}
	}
	if info, err := w.Lstat(bg, r, "/ws/link"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link itself: %v, %v", info, err)
	}
}

func swapper(t *testing.T, w world) (stop func()) {
	t.Helper()
	if err := os.Mkdir(w.host("real"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, w.host("real/f"), "inside")
	out := filepath.Join(filepath.Dir(w.dir), "out")
	put(t, filepath.Join(out, "f"), secretText)
	link(t, "../out", w.host("other"))
	quit := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for {
			select {
			case <-quit:
				return
			default:
			}
			_ = os.Rename(w.host("real"), w.host("hold"))
			_ = os.Rename(w.host("other"), w.host("real"))
			_ = os.Rename(w.host("real"), w.host("other"))
			_ = os.Rename(w.host("hold"), w.host("real"))
		}
	})
	return func() { close(quit); group.Wait() }
}

func TestFS11TOCTOUDirSwap(t *testing.T) {
	w := newWorld(t)
	stop := swapper(t, w)
	defer stop()
	inside, r := 0, readWrite(t)
	// On a busy machine the folder may be away for as long as many reads take.
	for i := 0; i < 20_000 || inside == 0 && i < 20_000_000; i++ {
		got, err := read(w, r, "/ws/real/f")
		if err == nil && got != "inside" {
			t.Fatalf("read %q", got)
		}
		if err == nil {
			inside++
		}
	}
	if inside == 0 {
		t.Error("no read got through: the race was not run")
	}
}

func TestFS12TOCTOUWrite(t *testing.T) {
	w := newWorld(t)
	stop := swapper(t, w)
	r, written := readWrite(t), 0
	for i := 0; i < 2_500 || written == 0 && i < 2_500_000; i++ {
		if _, err := w.WriteFile(bg, r, "/ws/real/g", strings.NewReader("x"), WriteOptions{}); err == nil {
			written++
		}
		if f, err := w.Open(bg, r, "/ws/real/h", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644); err == nil {
			_, _ = f.Write([]byte("x"))
			f.Close()
		}
	}
	stop()
	if written == 0 {
		t.Error("no write got through: the race was not run")
	}
	list, err := os.ReadDir(filepath.Join(filepath.Dir(w.dir), "out"))
	if err != nil || len(list) != 1 {
		t.Errorf("outside: %v, %v", list, err)
	}
}

func TestFS13HardLink(t *testing.T) {
	w := newWorld(t)
	if err := os.Link(w.canary, w.host("h")); err != nil {
		t.Skipf("hard links cannot be made here: %v", err)
	}
	if got, err := read(w, readWrite(t), "/ws/h"); err != nil || got != secretText {
		t.Errorf("allowed: %q, %v", got, err)
	}
	f, err := w.Open(bg, readWrite(t), "/ws/h", os.O_RDONLY, 0)
	if err != nil || f.Links != 2 {
		t.Errorf("nlink for the audit: %+v, %v", f, err)
	}
	f.Close()
	w.DenyMultilink = true
	if got, err := read(w, readWrite(t), "/ws/h"); !errors.Is(err, denied) {
		t.Errorf("denied: %q, %v", got, err)
	}
	if _, err := w.Open(bg, readWrite(t), "/ws/h", os.O_WRONLY|os.O_TRUNC, 0); !errors.Is(err, denied) {
		t.Errorf("truncate: %v", err) // newWorld checks that the canary is whole
	}
	w.Walk(bg, readWrite(t), "/ws", Walk{File: func(d *Folder, e Entry) error {
		if data, _, err := d.ReadFile(e.Name, nil, 0); err == nil && string(data) == secretText {
			t.Errorf("a walk read it as %s", e.Name)
		}
		return nil
	}})
}

func TestFS15TruncateWithoutWrite(t *testing.T) {
	w := newWorld(t)
	r := give(t, "fs.read /ws/**")
	for _, flag := range []int{os.O_TRUNC, os.O_RDWR, os.O_WRONLY, os.O_WRONLY | os.O_TRUNC, os.O_APPEND, os.O_CREATE} {
		if _, err := w.Open(bg, r, "/ws/a.txt", flag, 0o644); !errors.Is(err, denied) {
			t.Errorf("flag %#x: %v", flag, err)
		}
	}
	if _, err := w.Open(bg, r, "/ws/new", os.O_CREATE, 0o644); !errors.Is(err, denied) {
		t.Errorf("create: %v", err)
	}
	now := time.Now()
	for name, err := range map[string]error{
		"utimes": w.Chtimes(bg, r, "/ws/a.txt", now, now), "mkdir": w.Mkdir(bg, r, "/ws/n", 0o755),
		"mkdirall": w.MkdirAll(bg, r, "/ws/n/m", 0o755), "remove": w.Remove(bg, r, "/ws/a.txt"),
		"rename": w.Rename(bg, r, "/ws/a.txt", "/ws/c.txt"),
	} {
		if !errors.Is(err, denied) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f, err := w.Open(bg, r, "/ws/a.txt", os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(0); err == nil {
		t.Error("Truncate of a file opened for reading")
	}
	if _, err := f.Write([]byte("x")); err == nil {
		t.Error("Write to a file opened for reading")
	}
	if got, _ := os.ReadFile(w.host("a.txt")); string(got) != "alpha" {
		t.Errorf("the file is %q", got)
	}
}

func TestFS17NUL(t *testing.T) {
	w := newWorld(t)
	if _, err := read(w, readWrite(t), "/ws/a\x00/../../canary"); !errors.Is(err, abi.ErrInvalid) {
		t.Error(err)
	}
	if _, err := w.Virtual("/ws", "a\x00/../../canary"); !errors.Is(err, abi.ErrInvalid) {
		t.Error(err)
	}
}

func TestFS18LongName(t *testing.T) {
	w := newWorld(t)
	for _, p := range []string{strings.Repeat("x", 5_000), strings.Repeat("a/", 10_000), strings.Repeat("y", 300)} {
		_, err := read(w, readWrite(t), "/ws/"+p)
		if !errors.Is(err, syscall.ENAMETOOLONG) {
			t.Errorf("%d bytes: %v", len(p), err)
		}
		if _, err := w.Virtual("/ws", p); !errors.Is(err, syscall.ENAMETOOLONG) {
			t.Errorf("%d bytes: %v", len(p), err)
		}
	}
}

func TestFS20ProcSelf(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("/proc is Linux's")
	}
	w := newWorld(t, Mount{Name: "/host", Dir: "/"})
	r := give(t, "fs.read /ws/**", "fs.read /host/**", "fs.write /host/**")
	for _, p := range []string{"/host/proc/self/environ", "/host/sys/kernel/mm/ksm/run", "/host/dev/null", "/host/dev/core"} {
		if got, err := read(w, r, p); err == nil {
			t.Errorf("%s: %q", p, got)
		}
	}
	if _, err := w.ReadDir(bg, r, "/host/proc"); !errors.Is(err, denied) {
		t.Errorf("listing /proc: %v", err)
	}
	if _, err := w.WriteFile(bg, r, "/host/proc/self/comm", strings.NewReader("x"), WriteOptions{}); err == nil {
		t.Error("wrote to /proc")
	}
	if got, err := read(w, r, "/host"+w.canary); err != nil || got != secretText {
		t.Errorf("an ordinary file below /: %q, %v", got, err)
	}
}

func TestFS24HugeFile(t *testing.T) {
	w := newWorld(t)
	f, err := os.Create(w.host("huge"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(1 << 40); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	f.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := read(w, readWrite(t), "/ws/huge"); !errors.Is(err, abi.ErrTooLarge) {
		t.Error(err)
	}
	err = w.Walk(bg, readWrite(t), "/ws", Walk{File: func(d *Folder, e Entry) error {
		data, more, err := d.ReadFile(e.Name, nil, 1<<20)
		if e.Name == "huge" && (err != nil || !more || len(data) != 1<<20) {
			t.Errorf("%d bytes, more %v, %v", len(data), more, err)
		}
		return nil
	}})
	if err != nil {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 32<<20 {
		t.Errorf("%d MiB allocated", grown>>20)
	}
}

func TestFS26GitDirWrite(t *testing.T) {
	w := newWorld(t)
	put(t, w.host(".git/config"), "[core]")
	put(t, w.host(".git/HEAD"), "ref")
	link(t, ".git", w.host("innocent"))
	put(t, w.host("evil/hooks/post-checkout"), "#!/bin/sh")
	r := readWrite(t)
	for _, name := range []string{"/ws/.git/hooks/post-checkout", "/ws/.git/config", "/ws/.GIT/config", "/ws/innocent/config", "/ws/innocent/hooks/x"} {
		if _, err := w.WriteFile(bg, r, name, strings.NewReader("x"), WriteOptions{Parents: true}); !errors.Is(err, denied) {
			t.Errorf("WriteFile %s: %v", name, err)
		}
		if f, err := w.Open(bg, r, name, os.O_WRONLY|os.O_CREATE, 0o644); !errors.Is(err, denied) {
			t.Errorf("Open %s: %v, %v", name, f, err)
		}
	}
	if err := w.Rename(bg, r, "/ws/a.txt", "/ws/.git/config"); !errors.Is(err, denied) {
		t.Errorf("rename onto it: %v", err)
	}
	if err := w.Rename(bg, r, "/ws/.git", "/ws/dotgit"); !errors.Is(err, denied) {
		t.Errorf("rename of what holds it: %v", err)
	}
	os.Rename(w.host(".git"), w.host("was"))
	if err := w.Rename(bg, r, "/ws/evil", "/ws/.git"); !errors.Is(err, denied) {
		t.Errorf("rename that makes one: %v", err)
	}
	os.Rename(w.host("was"), w.host(".git"))
	put(t, w.host("plain/fish/config.fish"), "x")
	if err := w.Rename(bg, r, "/ws/plain", "/ws/.config"); !errors.Is(err, denied) {
		t.Errorf("rename that makes one inside: %v", err)
	}
	if err := w.Rename(bg, r, "/ws/plain", "/ws/other"); err != nil {
		t.Errorf("an ordinary rename: %v", err)
	}
	if got, err := read(w, r, "/ws/.git/config"); err != nil || got != "[core]" {
		t.Errorf("reading: %q, %v", got, err)
	}
	own := give(t, "fs.read /ws/**", "fs.write /ws/**", "fs.write /ws/.git/config")
	if _, err := w.WriteFile(bg, own, "/ws/.git/config", strings.NewReader("x"), WriteOptions{}); err != nil {
		t.Errorf("with a grant of its own: %v", err)
	}
}

func TestFS27OwnConfigAbsent(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"/ws/.elfhost/policy.toml", "/ws/.mcp.json", "/ws/.bashrc"} {
		if _, err := w.WriteFile(bg, readWrite(t), name, strings.NewReader("x"), WriteOptions{Parents: true}); !errors.Is(err, denied) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := w.MkdirAll(bg, readWrite(t), "/ws/.elfhost/skills", 0o755); !errors.Is(err, denied) {
		t.Errorf("MkdirAll: %v", err)
	}
	if _, err := os.Lstat(w.host(".elfhost")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it was made: %v", err)
	}
}

func TestS08SymlinkPaths(t *testing.T) {
	w := newWorld(t)
	link(t, "/etc", w.host("escape"))
	r := readWrite(t)
	if _, err := read(w, r, "/ws/escape/hostname"); !errors.Is(err, denied) {
		t.Errorf("read: %v", err)
	}
	if _, err := w.WriteFile(bg, r, "/ws/escape/new.txt", strings.NewReader("x"), WriteOptions{}); !errors.Is(err, denied) {
		t.Errorf("write: %v", err)
	}
	if _, err := w.ReadDir(bg, r, "/ws/escape"); !errors.Is(err, denied) {
		t.Errorf("list: %v", err)
	}
	if err := w.Walk(bg, r, "/ws/escape", Walk{}); !errors.Is(err, denied) {
		t.Errorf("walk: %v", err)
	}
	link(t, "sub", w.host("in"))
	link(t, filepath.Join(w.dir, "sub"), w.host("long"))
	for _, name := range []string{"/ws/in/b.txt", "/ws/long/b.txt", "/ws/in/../long/b.txt"} {
		if got, err := read(w, r, name); err != nil || got != "beta" {
			t.Errorf("a link that stays inside, %s: %q, %v", name, got, err)
		}
	}
	narrow := give(t, "fs.read /ws/in/**")
	if got, err := read(w, narrow, "/ws/in/b.txt"); !errors.Is(err, denied) {
		t.Errorf("a link led out of the grant: %q, %v", got, err)
	}
}

func TestS09SymlinkWalk(t *testing.T) {
	w := newWorld(t)
	link(t, w.canary, w.host("link.rs"))
	link(t, "..", w.host("up"))
	link(t, ".", w.host("loop"))
	var mu sync.Mutex
	var seen []string
	err := w.Walk(bg, readWrite(t), "/ws", Walk{File: func(d *Folder, e Entry) error {
		data, _, err := d.ReadFile(e.Name, nil, 0)
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(string(data), "canary") {
			t.Errorf("%s/%s: %q", d.Name, e.Name, data)
		}
		if e.Type != 0 && err == nil {
			t.Errorf("%s was followed", e.Name)
		}
		seen = append(seen, d.Name+"/"+e.Name)
		return nil
	}})
	slices.Sort(seen)
	want := []string{"/ws/a.txt", "/ws/link.rs", "/ws/loop", "/ws/sub/b.txt", "/ws/up"}
	if err != nil || !slices.Equal(seen, want) {
		t.Errorf("%v, %v", seen, err)
	}
}

func TestS11PrefixCompare(t *testing.T) {
	w := newWorld(t)
	put(t, w.host("..notes.txt"), "notes")
	link(t, "/etc/hostname", w.host("link"))
	for _, p := range []string{"..notes.txt", w.host("..notes.txt"), "/ws/..notes.txt", "file://" + filepath.ToSlash(w.host("..notes.txt"))} {
		name, err := w.Virtual("/ws", p)
		if err != nil || name != "/ws/..notes.txt" {
			t.Errorf("%s: %q, %v", p, name, err)
			continue
		}
		if got, err := read(w, readWrite(t), name); err != nil || got != "notes" {
			t.Errorf("%s: %q, %v", p, got, err)
		}
	}
	if _, err := read(w, readWrite(t), "/ws/link"); !errors.Is(err, denied) {
		t.Error(err)
	}
}
