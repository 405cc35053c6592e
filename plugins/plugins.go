// Package plugins carries the Wasm plugins that ship inside the binary. It
// knows their bytes, not how to run them. Nothing is unpacked before it is
// asked for: listing tools reads descriptions only.
package plugins

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/elfhost/elfhost/abi"
)

//go:embed all:dist
var dist embed.FS

// maxWasm is the ABI's limit on a module.
const maxWasm = 32 << 20

// ErrNotBuilt is in the error for a plugin that this binary was built without.
var ErrNotBuilt = errors.New("not built into this binary: run make plugins, then build again")

// Bundle is one plugin as it was built.
type Bundle struct {
	Name        string
	Digest      string // sha256 of the wasm, in hex
	Manifest    []byte // elf.toml
	Description abi.Description
}

// All returns the plugins in the order of their names. A binary that was built
// without any has none, which is no error.
func All() ([]Bundle, error) { return all(dist) }

// Bundled returns one plugin. The error wraps ErrNotBuilt where there is none.
func Bundled(name string) (Bundle, error) { return open(dist, name) }

// Wasm unpacks the module and checks it against the digest. It takes some tens
// of milliseconds: do without where a compiled form of the digest is at hand.
func (b Bundle) Wasm() ([]byte, error) { return wasm(dist, b) }

func all(from fs.FS) ([]Bundle, error) {
	entries, err := fs.ReadDir(from, "dist")
	if err != nil {
		return nil, fmt.Errorf("listing the bundled plugins: %w", err)
	}
	var out []Bundle
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		b, err := open(from, e.Name())
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

func open(from fs.FS, name string) (Bundle, error) {
	var files [3][]byte
	for i, file := range []string{"elf.toml", "digest", "describe.json"} {
		data, err := fs.ReadFile(from, path.Join("dist", name, file))
		if err != nil {
			return Bundle{}, fmt.Errorf("plugin %q: %w", name, ErrNotBuilt)
		}
		files[i] = data
	}
	b := Bundle{Name: name, Manifest: files[0], Digest: strings.TrimSpace(string(files[1]))}
	if err := json.Unmarshal(files[2], &b.Description); err != nil {
		return Bundle{}, fmt.Errorf("plugin %q: describe.json: %w", name, err)
	}
	return b, nil
}

func wasm(from fs.FS, b Bundle) ([]byte, error) {
	packed, err := fs.ReadFile(from, path.Join("dist", b.Name, "plugin.wasm.gz"))
	if err != nil {
		return nil, fmt.Errorf("plugin %q: %w", b.Name, ErrNotBuilt)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("plugin %q: %w", b.Name, err)
	}
	data, err := io.ReadAll(io.LimitReader(z, maxWasm+1))
	if err != nil {
		return nil, fmt.Errorf("plugin %q: %w", b.Name, err)
	}
	if len(data) > maxWasm {
		return nil, fmt.Errorf("plugin %q: the module is over %d bytes", b.Name, maxWasm)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != b.Digest {
		return nil, fmt.Errorf("plugin %q: the module does not match its digest %s", b.Name, b.Digest)
	}
	return data, nil
}
