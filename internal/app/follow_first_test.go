package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/internal/config"
)

// A build that came after a session had read the folder, and before it began
// to follow, is not passed over.
func TestFollowLooksAtWhatIsThere(t *testing.T) {
	dir, told := t.TempDir(), make(chan string, 1)
	for name, text := range map[string]string{"elf.toml": "abi = \"elf/1\"\nname = \"mine\"\nversion = \"1\"\n", "plugin.wasm": "\x00asm\x01\x00\x00\x00"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := &App{Paths: config.Paths{State: t.TempDir()}}
	a.opt = Options{Follow: true, Plugins: []string{dir}, Told: func(s string) { told <- s }}
	pkg, _, err := ReadPackage(dir)
	if err == nil {
		_, err = KeepBuild(a.Paths, dir, pkg)
	}
	if err == nil {
		err = a.follow(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer a.unfollow()
	select {
	case got := <-told:
		if !strings.Contains(got, "is not loaded here") { // the session of this test has loaded nothing
			t.Error(got)
		}
	case <-time.After(2 * time.Minute):
		t.Error("the build is passed over")
	}
}
