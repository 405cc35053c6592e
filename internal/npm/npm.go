// Package npm takes single files out of npm packages, through npm itself: its
// registry, proxy and credentials are the person's own. Nothing of a package
// is run.
package npm

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// ErrMissing: there is no npm on this machine.
var ErrMissing = errors.New("npm is not installed")

// maxFile and maxTotal bound what is unpacked, in bytes.
const (
	maxFile  = 16 << 20
	maxTotal = 256 << 20
)

// Spec names a WebAssembly file in a package: npm:NAME[@VERSION][#FILE].
type Spec struct {
	Name    string
	Version string // "": the newest
	File    string // as tree-sitter-FILE.wasm or FILE.wasm; "": the only one
}

var pattern = regexp.MustCompile(`^npm:((?:@[a-z0-9][a-z0-9._~-]*/)?[a-z0-9][a-z0-9._~-]*)(?:@([0-9A-Za-z][0-9A-Za-z.+-]*))?(?:#([A-Za-z0-9_-]+))?$`)

// Parse reads a Spec; ok is false for what does not begin with "npm:".
func Parse(s string) (spec Spec, ok bool, err error) {
	if !strings.HasPrefix(s, "npm:") {
		return Spec{}, false, nil
	}
	m := pattern.FindStringSubmatch(s)
	if m == nil || len(s) > 300 {
		return Spec{}, true, fmt.Errorf("%q is not of the form npm:NAME[@VERSION][#FILE]", s)
	}
	return Spec{m[1], m[2], m[3]}, true, nil
}

func (s Spec) String() string {
	out := "npm:" + s.Name
	if s.Version != "" {
		out += "@" + s.Version
	}
	if s.File != "" {
		out += "#" + s.File
	}
	return out
}

// Fetch downloads the package and gives the one file, and its name in the package.
func Fetch(ctx context.Context, s Spec) (name string, data []byte, err error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", nil, ErrMissing
	}
	dir, err := os.MkdirTemp("", "elfhost-npm-")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(dir)
	what := s.Name
	if s.Version != "" {
		what += "@" + s.Version
	}
	cmd := exec.CommandContext(ctx, npm, "pack", "--ignore-scripts", "--silent", "--pack-destination", dir, "--", what)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return "", nil, context.Cause(ctx)
		}
		return "", nil, fmt.Errorf("npm pack %s: %w: %s", what, err, lastLine(out))
	}
	tarballs, _ := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if len(tarballs) != 1 {
		return "", nil, fmt.Errorf("npm pack %s left %d archives", what, len(tarballs))
	}
	f, err := os.Open(tarballs[0])
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	return Pick(f, s.File)
}

// Pick reads the one WebAssembly file that is meant from a package's archive.
func Pick(archive io.Reader, file string) (name string, data []byte, err error) {
	z, err := gzip.NewReader(archive)
	if err != nil {
		return "", nil, fmt.Errorf("unpacking: %w", err)
	}
	var all []string
	for t := tar.NewReader(io.LimitReader(z, maxTotal)); ; {
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", nil, fmt.Errorf("unpacking: %w", err)
		}
		base := path.Base(h.Name)
		if h.Typeflag != tar.TypeReg || !strings.HasSuffix(base, ".wasm") || len(all) > 1000 {
			continue
		}
		short := strings.TrimSuffix(strings.TrimPrefix(base, "tree-sitter-"), ".wasm")
		all = append(all, short)
		if file != "" && file != short && file+".wasm" != base {
			continue
		}
		if h.Size > maxFile {
			return "", nil, fmt.Errorf("%s has %d bytes, more than %d", h.Name, h.Size, maxFile)
		}
		if name, data = h.Name, nil; file == "" && len(all) > 1 {
			continue
		}
		if data, err = io.ReadAll(t); err != nil {
			return "", nil, fmt.Errorf("unpacking: %w", err)
		}
		if file != "" {
			return name, data, nil
		}
	}
	switch {
	case len(all) == 0:
		return "", nil, errors.New("the package has no .wasm file")
	case len(all) == 1 && file == "":
		return name, data, nil
	}
	return "", nil, fmt.Errorf("name one of the package's modules after a #: %s", strings.Join(all, ", "))
}

func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}
