package plugins_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/elfhost/elfhost/internal/config/manifest"
	"github.com/elfhost/elfhost/internal/plugintest"
	"github.com/elfhost/elfhost/plugins"
)

// What is carried is what the sources make: the same module, and a description
// that the module itself gives in the sandbox.
func TestBundlesAreUpToDate(t *testing.T) {
	manifests, err := filepath.Glob("*/elf.toml")
	if err != nil || len(manifests) < 3 {
		t.Fatalf("%q, %v", manifests, err)
	}
	if list, err := plugins.All(); err != nil || len(list) == 0 {
		t.Skipf("no plugin is built: make plugins (%v)", err)
	}
	for _, m := range manifests {
		dir := filepath.Dir(m)
		t.Run(dir, func(t *testing.T) {
			b, err := plugins.Bundled(dir)
			if err != nil {
				t.Fatal(err)
			}
			source, err := os.ReadFile(m)
			if err != nil || string(source) != string(b.Manifest) {
				t.Errorf("elf.toml differs: make plugins (%v)", err)
			}
			got, err := manifest.Read(b.Manifest, m)
			if err != nil || got.Name != b.Name {
				t.Errorf("manifest %+v, %v", got, err)
			}
			wasm := plugintest.Build(t, dir)
			if sum := sha256.Sum256(wasm); hex.EncodeToString(sum[:]) != b.Digest {
				t.Error("the module is not that of the sources: make plugins")
			}
			if got := plugintest.Load(t, dir).Description(); !reflect.DeepEqual(got, b.Description) {
				module, _ := json.Marshal(got)
				carried, _ := json.Marshal(b.Description)
				t.Errorf("the module says\n%s\ndescribe.json says\n%s", module, carried)
			}
		})
	}
}
