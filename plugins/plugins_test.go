package plugins

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

func TestBundle(t *testing.T) {
	good := fstest.MapFS{
		"dist/README":           {},
		"dist/a/elf.toml":       {Data: []byte("abi = \"elf/1\"\n")},
		"dist/a/digest":         {Data: []byte("9b1b96f4a63427d5c2cff92e4eb5a3dd0ad1ef1fd4bc6ee09b59ba86d3d8e6aa\n")},
		"dist/a/describe.json":  {Data: []byte(`{"abi":"elf/1","tools":[{"name":"t","description":"d","inputSchema":{}}]}`)},
		"dist/a/plugin.wasm.gz": {Data: []byte("no gzip")},
		"dist/b/elf.toml":       {Data: []byte("x")},
	}
	b, err := open(good, "a")
	if err != nil || b.Name != "a" || len(b.Digest) != 64 || len(b.Description.Tools) != 1 {
		t.Errorf("%+v, %v", b, err)
	}
	if _, err := wasm(good, b); err == nil || !strings.Contains(err.Error(), `plugin "a"`) {
		t.Errorf("a module that is no gzip: %v", err)
	}
	for _, name := range []string{"b", "c", "README", "../a", ""} {
		if _, err := open(good, name); !errors.Is(err, ErrNotBuilt) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := all(good); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("half a plugin was listed: %v", err)
	}
	delete(good, "dist/b/elf.toml")
	if list, err := all(good); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	good["dist/a/describe.json"] = &fstest.MapFile{Data: []byte("{")}
	if _, err := open(good, "a"); err == nil {
		t.Error("a broken description was read")
	}
}

func TestNoneIsBuilt(t *testing.T) {
	if list, err := all(fstest.MapFS{"dist/README": {}}); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := all(fstest.MapFS{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// Every plugin that was built is whole.
func TestBuilt(t *testing.T) {
	list, err := All()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Skip("no plugin is built: make plugins")
	}
	for _, b := range list {
		module, err := b.Wasm()
		if err != nil || !strings.HasPrefix(string(module), "\x00asm") {
			t.Errorf("%s: %v", b.Name, err)
		}
		if len(b.Description.Tools) == 0 || b.Description.ABI != "elf/1" {
			t.Errorf("%s: %+v", b.Name, b.Description)
		}
	}
}
