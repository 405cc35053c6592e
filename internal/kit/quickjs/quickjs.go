// Package quickjs carries the engine that JavaScript plugins are built on: the
// quickjs.wasm of npm's quickjs-wasi, which is QuickJS-NG as a core module.
package quickjs

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// The package of npm, and the digest of the module in it.
const (
	Package = "quickjs-wasi@3.7.0"
	Digest  = "c0bd8f296e18cf074969f6401b9ecb72609a1323818ec2b9bf7a8f8d740d1363"
)

// maxModule bounds what is unpacked, in bytes.
const maxModule = 4 << 20

//go:embed all:dist
var dist embed.FS

// ErrNotBuilt is the error of a binary that was built without the engine.
var ErrNotBuilt = errors.New("this elfhost was built without the JavaScript engine")

// Engine unpacks the module.
func Engine() ([]byte, error) {
	packed, err := dist.ReadFile("dist/quickjs.wasm.gz")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotBuilt
	}
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpacking the JavaScript engine: %w", err)
	}
	b, err := io.ReadAll(io.LimitReader(z, maxModule))
	if err != nil {
		return nil, fmt.Errorf("unpacking the JavaScript engine: %w", err)
	}
	return b, Check(b)
}

// Check holds a module against the digest.
func Check(module []byte) error {
	sum := sha256.Sum256(module)
	if got := hex.EncodeToString(sum[:]); got != Digest {
		return fmt.Errorf("the JavaScript engine has the sha256 %s; that of npm's %s is %s", got, Package, Digest)
	}
	return nil
}
