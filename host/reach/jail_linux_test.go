package reach

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
)

// Bubblewrap makes copies and links of the system's files in its own root. Where
// a person's folder holds such a path, they would be made on the host: nothing
// is made below what is shown of it.
func TestNothingIsMadeInAPersonsFolder(t *testing.T) {
	s := Sandbox{Kind: Bubblewrap, bwrap: "bwrap", system: systemBinds()}
	for _, p := range []Program{
		{Dir: "/etc"},
		{Dir: "/etc/ssl"},
		{Dir: "/etc", ReadOnly: true},
		{Dir: t.TempDir(), Write: []string{"/etc/"}},
		{Dir: t.TempDir(), Read: []string{"/etc"}, Network: true},
		{Dir: "/usr"},
		{Dir: t.TempDir()},
	} {
		p.Argv = []string{"/bin/true"}
		cmd, clean, err := s.command(p)
		if err != nil {
			t.Fatal(err)
		}
		clean()
		for i, a := range cmd.Args {
			at := map[string]int{"--file": 2, "--symlink": 2, "--dir": 1}[a]
			if at == 0 {
				continue
			}
			made := cmd.Args[i+at]
			for _, f := range folders(p) {
				if _, in := below(f, made); in {
					t.Errorf("%+v: %s makes %s on the host", p, a, made)
				}
			}
		}
		if own := filepath.Clean(p.Dir); own == "/etc" { // the system's files stay readable only
			i := slices.Index(cmd.Args, "/etc/passwd")
			if _, err := os.Stat("/etc/passwd"); err == nil && (i < 1 || cmd.Args[i-1] != "--ro-bind") {
				t.Errorf("%+v: /etc/passwd is not bound read-only: %s", p, strings.Join(cmd.Args, " "))
			}
		}
	}
}

func TestNoWorkspaceIsTheRootFolder(t *testing.T) {
	for _, kind := range []string{Bubblewrap, Namespaces, Landlock} {
		for _, p := range []Program{{Dir: "/"}, {Dir: "/usr", Write: []string{"/"}}, {Dir: "/usr", Read: []string{"//"}}} {
			p.Argv = []string{"/bin/true"}
			if _, _, err := (Sandbox{Kind: kind, bwrap: "bwrap"}).command(p); !errors.Is(err, abi.ErrDenied) {
				t.Errorf("%s, %+v: %v", kind, p, err)
			}
		}
	}
}
