package oci

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/skillhub/pack"
)

// Limits of reading an image's layers for the module in them.
const (
	maxUnpacked = pack.MaxBytes
	maxEntries  = 20_000
)

// errNoModule is an image without a module.
var errNoModule = errors.New("it holds neither a package of elfhost, nor a layer of the type application/wasm, nor /plugin.wasm")

// fromImage writes /plugin.wasm of a container image, the last layer that has
// it, as other hosts of Wasm plugins take it.
func (s *session) fromImage(ctx context.Context, m *manifest, w io.Writer) error {
	var odd string
	left := int64(maxUnpacked)
	for _, l := range slices.Backward(m.Layers) {
		if !slices.Contains(tarTypes, l.MediaType) {
			odd = l.MediaType
			continue
		}
		b, err := l.check(maxUnpacked)
		if err != nil {
			return err
		}
		found, err := s.fromLayer(ctx, b, w, &left)
		if err != nil || found {
			return err
		}
	}
	if odd != "" {
		return fmt.Errorf("%w (there are layers of the type %.100q)", errNoModule, odd)
	}
	return errNoModule
}

// fromLayer looks through one layer. The module counts only once the whole
// layer has the digest that was promised.
func (s *session) fromLayer(ctx context.Context, b blob, w io.Writer, left *int64) (bool, error) {
	r, err := s.blobOf(ctx, b)
	if err != nil {
		return false, err
	}
	defer r.Close()
	found, err := moduleOf(r, w, left)
	if err != nil {
		return false, err
	}
	if err := r.verify(); err != io.EOF {
		return false, err
	}
	return found, nil
}

// moduleOf reads a layer's tar, packed or not, for plugin.wasm at its top.
func moduleOf(r io.Reader, w io.Writer, left *int64) (found bool, err error) {
	in := bufio.NewReader(r)
	var plain io.Reader = in
	if magic, _ := in.Peek(4); len(magic) >= 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		z, err := gzip.NewReader(in)
		if err != nil {
			return false, fmt.Errorf("unpacking a layer: %w", err)
		}
		plain = z
	} else if len(magic) == 4 && string(magic) == "\x28\xb5\x2f\xfd" {
		return false, errors.New("a layer is packed with zstd, which elfhost does not read")
	}
	tr := tar.NewReader(&drained{plain, left})
	gone := false // from the layers below
	for n := 0; ; n++ {
		h, err := tr.Next()
		if err == io.EOF && gone && !found {
			return false, errNoModule
		}
		if err == io.EOF {
			return found, nil
		}
		if err != nil {
			return false, fmt.Errorf("reading a layer: %w", err)
		}
		if n > maxEntries {
			return false, fmt.Errorf("a layer has more than %d entries", maxEntries)
		}
		name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		switch {
		case name == ".wh."+pack.ModuleFile || name == ".wh..wh..opq":
			gone = true
		case name != pack.ModuleFile || found:
		case h.Typeflag != tar.TypeReg:
			return false, errors.New("/plugin.wasm of the image is not a regular file")
		case h.Size > pack.MaxFile:
			return false, fmt.Errorf("/plugin.wasm of the image has %d bytes, more than the %d that a module may have", h.Size, pack.MaxFile)
		default:
			if _, err := io.Copy(w, tr); err != nil {
				return false, fmt.Errorf("reading /plugin.wasm: %w", err)
			}
			found = true
		}
	}
}

// drained ends with an error where more was unpacked than may be.
type drained struct {
	r    io.Reader
	left *int64
}

func (d *drained) Read(p []byte) (int, error) {
	if *d.left <= 0 {
		return 0, fmt.Errorf("the image's layers unpack to more than %d bytes", maxUnpacked)
	}
	n, err := d.r.Read(p[:min(int64(len(p)), *d.left)])
	*d.left -= int64(n)
	return n, err
}
