package reach

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// TestMain lets the test binary be its own sandbox helper, as elfhost is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == SandboxVerb {
		os.Exit(SandboxMain(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == keptVerb {
		os.Exit(keptMain(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == probeVerb {
		probeMain(os.Args[2:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// give makes rights of "capability scope" lines.
func give(t testing.TB, lines ...string) policy.Rights {
	t.Helper()
	var gs []policy.Grant
	for _, l := range lines {
		g, err := policy.ParseGrant(l)
		if err != nil {
			t.Fatal(err)
		}
		gs = append(gs, g)
	}
	grants, err := policy.New("grants", gs...)
	if err != nil {
		t.Fatal(err)
	}
	return policy.Rights{Grants: grants}
}

func readWrite(t testing.TB) policy.Rights { return give(t, "fs.read /ws/**", "fs.write /ws/**") }

// world is a workspace with something outside that nobody may reach.
type world struct {
	*Tree
	dir    string // of the workspace
	canary string
}

const secretText = "canary: nobody may read this"

func newWorld(t testing.TB, mounts ...Mount) world {
	t.Helper()
	top := t.TempDir()
	w := world{dir: filepath.Join(top, "ws"), canary: filepath.Join(top, "canary")}
	put(t, w.canary, secretText)
	put(t, filepath.Join(w.dir, "a.txt"), "alpha")
	put(t, filepath.Join(w.dir, "sub", "b.txt"), "beta")
	put(t, filepath.Join(top, "ws-evil", "f"), secretText)
	tree, err := NewTree(append([]Mount{{Name: "/ws", Dir: w.dir}}, mounts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(w.canary); err != nil || string(got) != secretText {
			t.Errorf("the canary is %q, %v", got, err)
		}
	})
	w.Tree = tree
	return w
}

func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t testing.TB, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Skipf("links cannot be made here: %v", err)
	}
}

func (w world) host(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }

func read(w world, r policy.Rights, name string) (string, error) {
	data, err := w.ReadFile(context.Background(), r, name, 0)
	return string(data), err
}

var bg = context.Background()

const denied = abi.ErrDenied
