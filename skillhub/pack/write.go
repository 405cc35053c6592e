package pack

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/skillhub"
)

// Entry is a file to pack.
type Entry struct {
	Name string
	Size int64
	Open func() (io.ReadCloser, error)
}

// gzipHead is how every archive begins: deflate, no name, no time, no system.
var gzipHead = [10]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}

// Write packs files, in whatever order they are given, and checks them as
// reading will. What it wrote before an error is no package.
func Write(ctx context.Context, w io.Writer, entries []Entry, o Options) (*Contents, error) {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	if len(entries) > MaxEntries {
		return nil, refuse("it has %d files; the limit is %d", len(entries), MaxEntries)
	}
	zw := gzip.NewWriter(w) // its level never shows in the header, as opposed to the fastest and the best
	tw := tar.NewWriter(zw)
	b := &builder{o: o}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := b.pack(tw, e); err != nil {
			return nil, err
		}
	}
	if err := tw.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	if err := zw.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return b.finish()
}

func (b *builder) pack(tw *tar.Writer, e Entry) error {
	r, err := e.Open()
	if err != nil {
		return fmt.Errorf("packing %q: %w", e.Name, err)
	}
	defer r.Close()
	body, left, err := b.begin(e.Name, e.Size, r)
	if err != nil {
		return err
	}
	if left {
		b.c.Files = b.c.Files[:len(b.c.Files)-1] // never was in the package
		return nil
	}
	if err := tw.WriteHeader(header(e.Name, e.Size)); err != nil {
		return fmt.Errorf("packing %q: %w", e.Name, err)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(tw, sum, b.keep(e.Name)), io.LimitReader(body, e.Size))
	switch {
	case err != nil:
		return fmt.Errorf("packing %q: %w", e.Name, err)
	case n != e.Size:
		return fmt.Errorf("packing %q: it changed while it was read", e.Name)
	}
	b.end(skillhub.DigestSum(sum.Sum(nil)))
	return nil
}

// header is the one form of an entry.
func header(name string, size int64) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644}
}
