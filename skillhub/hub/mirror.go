package hub

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/internal/disk"
)

// Selection says what of a hub is mirrored.
type Selection struct {
	// Packages are NAME, NAME@VERSION, or patterns of names such as "pdf-*";
	// none: all. A name without a version brings its newest version.
	Packages []string
	// AllVersions brings every version of what is named without one.
	AllVersions bool
	// Index brings the index, for searching.
	Index bool
}

// Mirrored is what was copied.
type Mirrored struct {
	Packages []skillhub.Listing // in the order of their names
	Files    int
	Bytes    int64
}

// Mirror copies a hub, or a part of it, into a folder, with the metadata as it
// is: the copy needs no keys, and clients verify it as they do the hub. What is
// there already is not fetched again. Packages that an earlier call brought
// stay, the metadata of their bins is renewed.
func (s *Set) Mirror(ctx context.Context, name, dir string, sel Selection) (Mirrored, error) {
	return s.mirror(ctx, name, sel, &folderSink{dir: dir})
}

// Bundle is a Mirror in one file, which a client uses as a hub's location.
func (s *Set) Bundle(ctx context.Context, name, file string, sel Selection) (out Mirrored, err error) {
	err = disk.Writer{}.WriteFrom(file, 0o644, func(w io.Writer) error {
		z := zip.NewWriter(w)
		if out, err = s.mirror(ctx, name, sel, &bundleSink{zip: z, have: map[string]bool{}}); err != nil {
			return err
		}
		return z.Close()
	})
	return out, err
}

// sink is where a mirror goes. The last file that it is given is timestamp.json.
type sink interface {
	has(name string, size int64, d skillhub.Digest) bool
	put(name string, fill func(io.Writer) error) error
	bins() ([]string, error) // that are there
}

type folderSink struct{ dir string }

func (f *folderSink) path(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

// has reads what is there: sticks forget.
func (f *folderSink) has(name string, size int64, d skillhub.Digest) bool {
	st, err := os.Stat(f.path(name))
	if err != nil || !st.Mode().IsRegular() || st.Size() != size {
		return false
	}
	in, err := os.Open(f.path(name))
	if err != nil {
		return false
	}
	defer in.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, in)
	return err == nil && skillhub.DigestSum(sum.Sum(nil)) == d
}

func (f *folderSink) put(name string, fill func(io.Writer) error) error {
	return disk.Writer{}.WriteFrom(f.path(name), 0o644, fill)
}

func (f *folderSink) bins() ([]string, error) {
	entries, err := os.ReadDir(f.path(metadataDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []string
	for _, e := range entries {
		_, role, _ := strings.Cut(strings.TrimSuffix(e.Name(), ".json"), ".")
		if strings.HasPrefix(role, Packages+"-") && !slices.Contains(out, role) {
			out = append(out, role)
		}
	}
	return out, err
}

type bundleSink struct {
	zip  *zip.Writer
	have map[string]bool
}

func (b *bundleSink) has(name string, _ int64, _ skillhub.Digest) bool { return b.have[name] }

func (b *bundleSink) put(name string, fill func(io.Writer) error) error {
	method := zip.Deflate
	if strings.HasPrefix(name, "blobs/") || strings.HasPrefix(name, "index/") {
		method = zip.Store
	}
	w, err := b.zip.CreateHeader(&zip.FileHeader{Name: name, Method: method})
	if err != nil {
		return err
	}
	b.have[name] = true
	return fill(w)
}

func (b *bundleSink) bins() ([]string, error) { return nil, nil }

// copier copies from one state of a hub.
type copier struct {
	*client
	to  sink
	out *Mirrored
}

func (s *Set) mirror(ctx context.Context, name string, sel Selection, to sink) (Mirrored, error) {
	var out Mirrored
	remotes, err := s.named(name)
	if err != nil {
		return out, err
	}
	if len(remotes) > 1 {
		return out, fmt.Errorf("several hubs are known: name the one that is meant")
	}
	c, err := s.o.open(ctx, remotes[0])
	if err != nil {
		return out, err
	}
	defer c.close()
	cp := copier{c, to, &out}
	if err := cp.all(ctx, sel); err != nil {
		return out, fmt.Errorf("hub %s: %w", remotes[0].Name, explain(err))
	}
	return out, nil
}

func (c *copier) all(ctx context.Context, sel Selection) error {
	if c.place == nil {
		return c.away
	}
	names, err := c.selected(ctx, sel)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := c.pkg(ctx, n, sel); err != nil {
			return err
		}
	}
	if sel.Index {
		if err := c.file(ctx, indexTarget); err != nil {
			return err
		}
	} else if _, err := c.find(indexTarget); err != nil { // its bin, which says that there is one
		return err
	}
	return c.metadata(ctx)
}

// selected lists what is to be copied, as NAME or NAME@VERSION.
func (c *copier) selected(ctx context.Context, sel Selection) ([]string, error) {
	var plain, patterns []string
	for _, p := range sel.Packages {
		if strings.ContainsAny(p, "*?[") {
			if _, err := path.Match(p, ""); err != nil {
				return nil, fmt.Errorf("the pattern %q: %w", p, err)
			}
			patterns = append(patterns, p)
		} else {
			plain = append(plain, p)
		}
	}
	if len(plain) > 0 && len(patterns) == 0 {
		return plain, nil
	}
	b, err := c.target(ctx, indexTarget, maxIndex)
	if err != nil {
		return nil, err
	}
	for l, err := range decodeRows(b) {
		if err != nil {
			return nil, err
		}
		all := len(sel.Packages) == 0
		for _, p := range patterns {
			hit, _ := path.Match(p, l.Name)
			all = all || hit
		}
		if all {
			plain = append(plain, l.Name)
		}
	}
	return plain, nil
}

func (c *copier) pkg(ctx context.Context, text string, sel Selection) error {
	ref, err := skillhub.ParseRef(text)
	if err != nil {
		return err
	}
	if ref.Kind != skillhub.Named || ref.Hub != "" {
		return fmt.Errorf("%q is not NAME or NAME@VERSION", text)
	}
	d, err := c.document(ctx, ref.Name)
	if err != nil {
		return err
	}
	if err := c.file(ctx, documentTarget(ref.Name)); err != nil {
		return err
	}
	versions := d.Versions
	if ref.Version != "" || !sel.AllVersions {
		l, err := d.Find(ref.Version)
		if err != nil {
			return err
		}
		versions = []skillhub.Listing{l}
	}
	for _, l := range versions {
		c.out.Packages = append(c.out.Packages, l)
		name := blobPath(l.Digest)
		if c.to.has(name, l.Size, l.Digest) {
			continue
		}
		if err := c.put(name, l.Size, func(w io.Writer) error { return c.archive(ctx, l, w) }); err != nil {
			return fmt.Errorf("%s %s: %w", l.Name, l.Version, err)
		}
	}
	return nil
}

func (c *copier) put(name string, size int64, fill func(io.Writer) error) error {
	c.out.Files++
	c.out.Bytes += size
	return c.to.put(name, fill)
}

// file copies a target, verified.
func (c *copier) file(ctx context.Context, target string) error {
	f, err := c.find(target)
	if err != nil {
		return err
	}
	name := targetPath(target, digestOf(f))
	if c.to.has(name, f.Length, digestOf(f)) {
		return nil
	}
	b, err := c.target(ctx, target, max(maxIndex, maxDocument))
	if err != nil {
		return err
	}
	return c.bytes(name, b)
}

func (c *copier) bytes(name string, b []byte) error {
	return c.put(name, int64(len(b)), func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// metadata copies what was verified: the roots, the bins that are needed, and
// at last the timestamp, which makes the new state the mirror's.
func (c *copier) metadata(ctx context.Context) error {
	set := c.tuf.GetTrustedMetadataSet()
	for v := int64(1); v <= set.Root.Signed.Version; v++ {
		b, err := readFrom(ctx, c.place, metadataPath(Root, v), maxRoot)
		if err != nil {
			return err
		}
		if err := c.bytes(metadataPath(Root, v), b); err != nil {
			return err
		}
		if v == set.Root.Signed.Version {
			if err := c.bytes(metadataDir+"/root.json", b); err != nil {
				return err
			}
		}
	}
	roles, err := c.to.bins()
	if err != nil {
		return err
	}
	for role := range set.Targets {
		if !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	for _, role := range roles {
		m := set.Snapshot.Signed.Meta[role+".json"]
		if m == nil {
			continue // of another hub's mirror in this folder
		}
		name := metadataPath(role, m.Version)
		if c.to.has(name, m.Length, skillhub.DigestSum(m.Hashes["sha256"])) {
			continue
		}
		b, err := readFrom(ctx, c.place, name, maxTargets)
		if err == nil {
			err = m.VerifyLengthHashes(b)
		}
		if err == nil {
			err = c.bytes(name, b)
		}
		if err != nil {
			return err
		}
	}
	return c.current(ctx)
}

// current copies snapshot and timestamp as they were verified, from where TUF's
// client keeps them: the hub may have gone on in the meantime.
func (c *copier) current(ctx context.Context) error {
	set := c.tuf.GetTrustedMetadataSet()
	for _, role := range []string{Snapshot, Timestamp} {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := disk.ReadFile(filepath.Join(c.metadataDir(), role+".json"), maxSnapshot)
		if err != nil {
			return err
		}
		if err := c.bytes(metadataPath(role, set.Snapshot.Signed.Version), b); err != nil {
			return err
		}
	}
	return nil
}
