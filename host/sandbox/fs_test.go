package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
)

const (
	readWS  = "fs.read /ws/**"
	writeWS = "fs.write /ws/**"
)

// canary makes a file outside the workspace of p, and says what it holds.
func canary(t *testing.T, p *probe) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(p.dir), "canary")
	if err := os.WriteFile(path, []byte("CANARY"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// secretless fails when an answer holds what lies outside.
func (p *probe) secretless(a args, grants ...string) string {
	p.t.Helper()
	got := p.get(a, grants...)
	if strings.Contains(got, "CANARY") || strings.Contains(got, "root:") {
		p.t.Errorf("%+v read what lies outside: %q", a, got)
	}
	return got
}

func (p *probe) file(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
	return path
}

func TestFiles(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	p.file("a.txt", "one")
	p.want(args{Do: "read", A: "/ws/a.txt"}, "one", readWS)
	p.want(args{Do: "write", A: "/ws/b.txt", B: "two"}, "ok", writeWS)
	p.want(args{Do: "append", A: "/ws/b.txt", B: "+"}, "ok", writeWS)
	p.want(args{Do: "mkdir", A: "/ws/d"}, "ok", writeWS)
	p.want(args{Do: "rename", A: "/ws/b.txt", B: "/ws/d/c.txt"}, "ok", writeWS, readWS)
	p.want(args{Do: "list", A: "/ws"}, "a.txt d", readWS)
	p.want(args{Do: "read", A: "/ws/d/c.txt"}, "two+", readWS)
	p.want(args{Do: "remove", A: "/ws/d/c.txt"}, "ok", writeWS, readWS)
	p.want(args{Do: "list", A: "/"}, "ws", readWS)
	p.refused(args{Do: "write", A: "/ws/b.txt"}, "ermission", readWS)
	p.refused(args{Do: "read", A: "/ws/a.txt"}, "ermission", "fs.read /ws/docs/**")
	p.want(args{Do: "read", A: "/ws/a.txt"}, "one", readWS)
	if len(p.last.Files) != 1 || p.last.Files[0] != "read /ws/a.txt" {
		t.Errorf("files of the receipt: %v", p.last.Files)
	}
}

func TestFS01To04PathsThatClimb(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	canary(t, p)
	p.file("sub/x", "x")
	evil := p.dir + "-evil"
	if err := os.MkdirAll(evil, 0o755); err != nil {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(evil, "f"), []byte("CANARY"), 0o644)
	for _, path := range []string{"../canary", "/ws/../canary", "/ws/sub/../../canary", "/ws/../../../../etc/passwd", "/etc/passwd",
		"/../etc/passwd", "/ws-evil/f", "/ws/../ws-evil/f", evil + "/f"} {
		if got := p.secretless(args{Do: "read", A: path}, readWS); !strings.HasPrefix(got, "ERROR") {
			t.Errorf("%s: %q", path, got)
		}
	}
	// Past Go's own cleaning, relative to the root.
	for path, errno := range map[string]string{"../canary": "63", "ws/../../canary": "63", "/etc/passwd": "63", "etc/passwd": "44", "ws/sub/../../../x": "63"} {
		if got := p.secretless(args{Do: "openraw", A: path, N: 3}, readWS); got != "errno "+errno {
			t.Errorf("%s: %s, want errno %s", path, got, errno)
		}
		if errno == "63" && len(p.last.Denied) == 0 {
			t.Errorf("%s: no denial was noted", path)
		}
	}
}

func TestFS05To08Links(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	path := canary(t, p)
	for name, target := range map[string]string{"l": path, "r": "../canary", "d": "..", "out": filepath.Dir(p.dir)} {
		if err := os.Symlink(target, filepath.Join(p.dir, name)); err != nil {
			t.Skip("this system makes no links:", err)
		}
	}
	for _, a := range []args{{Do: "read", A: "/ws/l"}, {Do: "read", A: "/ws/r"}, {Do: "read", A: "/ws/d/canary"}, {Do: "write", A: "/ws/d/new", B: "x"},
		{Do: "write", A: "/ws/r", B: "x"}, {Do: "list", A: "/ws/out/"}, {Do: "stat", A: "/ws/out/"}, {Do: "append", A: "/ws/l", B: "x"}} {
		if got := p.secretless(a, readWS, writeWS); !strings.HasPrefix(got, "ERROR") {
			t.Errorf("%+v: %q", a, got)
		}
	}
	p.refused(args{Do: "symlink", A: "../canary", B: "/ws/mine"}, "not permitted", readWS, writeWS)
	p.file("own", "own")
	p.refused(args{Do: "link", A: "/ws/own", B: "/ws/mine"}, "not permitted", readWS, writeWS)
	if _, err := os.Lstat(filepath.Join(p.dir, "mine")); err == nil {
		t.Error("a guest made a link")
	}
	if b, _ := os.ReadFile(path); string(b) != "CANARY" {
		t.Errorf("the canary is %q", b)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(p.dir), "new")); err == nil {
		t.Error("a file was made outside")
	}
}

func TestFS15TruncateWithoutWrite(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	path := p.file("a", "keep me")
	before, _ := os.Stat(path)
	for _, do := range []string{"trunc", "otrunc", "chtimes", "append", "write", "remove"} {
		p.refused(args{Do: do, A: "/ws/a", B: "x"}, "", readWS)
	}
	after, err := os.Stat(path)
	if err != nil || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the file was changed: %v", err)
	}
}

func TestFS17To18Names(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	canary(t, p)
	p.file("a", "x")
	if got := p.get(args{Do: "openraw", A: "ws/a\x00/../../canary", N: 3}, readWS); got != "errno 28" {
		t.Errorf("NUL: %s", got)
	}
	if got := p.get(args{Do: "openraw", A: "ws/" + strings.Repeat("a", 5000), N: 3}, readWS); got != "errno 37" {
		t.Errorf("long name: %s", got)
	}
	if got := p.get(args{Do: "openraw", A: strings.Repeat("a/", 10_000), N: 3}, readWS); got != "errno 37" {
		t.Errorf("many components: %s", got)
	}
}

func TestFS24HugeFile(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	path := p.file("huge", "")
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Skip("no sparse files here:", err)
	}
	// A guest that reads it whole runs into its own memory; the host holds none of it.
	r, err := p.try(args{Do: "read", A: "/ws/huge"}, readWS)
	if err == nil && !r.IsError {
		t.Error("a file of 1 TiB was read into 64 MiB")
	}
	p.want(args{Do: "read1", A: "/ws/huge"}, strings.Repeat("\x00", 16), readWS)
}

func TestFS26ProtectedNames(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	p.file(".git/config", "x")
	for _, name := range []string{".git/config", ".git/hooks/post-checkout", ".GIT/config", ".elfhost/policy.toml"} {
		os.MkdirAll(filepath.Dir(filepath.Join(p.dir, name)), 0o755)
		p.refused(args{Do: "write", A: "/ws/" + name, B: "evil"}, "ermission", readWS, writeWS)
	}
}
