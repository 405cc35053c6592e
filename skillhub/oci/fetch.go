package oci

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"slices"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/pack"
)

// Fetch is skillhub.Source's. Fetched.Source names the manifest by its digest.
func (g *Registry) Fetch(ctx context.Context, r skillhub.Ref, dst io.Writer) (skillhub.Fetched, error) {
	out, err := g.fetch(ctx, r, dst)
	if err != nil {
		return skillhub.Fetched{}, fmt.Errorf("fetching %s: %w", r, err)
	}
	return out, nil
}

func (g *Registry) fetch(ctx context.Context, r skillhub.Ref, dst io.Writer) (out skillhub.Fetched, err error) {
	l, err := locate(r)
	if err != nil {
		return out, err
	}
	s, err := g.open(l, false)
	if err != nil {
		return out, err
	}
	m, digest, err := s.manifest(ctx, l.ref, maxManifest)
	if err != nil {
		return out, err
	}
	top := digest
	if m.isIndex() {
		d, err := m.choose()
		if err != nil {
			return out, err
		}
		b, err := d.check(maxManifest)
		if err != nil {
			return out, err
		}
		if m, _, err = s.manifest(ctx, string(b.digest), b.size); err != nil {
			return out, err
		}
		if m.isIndex() {
			return out, errors.New("an index lists another index")
		}
	}
	t := &tally{w: dst, h: sha256.New()}
	if out.Form, err = s.content(ctx, m, t); err != nil {
		return out, err
	}
	out.Digest, out.Size, out.Source = skillhub.DigestSum(t.h.Sum(nil)), t.n, l.at(top).String()
	out.Vouched = "the registry " + l.registry
	if r.Digest != "" {
		out.Vouched = "the digest in the reference"
	}
	return out, nil
}

// Resolve gives the reference of the very manifest that a tag names now.
func (g *Registry) Resolve(ctx context.Context, r skillhub.Ref) (skillhub.Ref, error) {
	l, err := locate(r)
	if err != nil {
		return r, err
	}
	s, err := g.open(l, false)
	if err != nil {
		return r, err
	}
	_, digest, err := s.manifest(ctx, l.ref, maxManifest)
	if err != nil {
		return r, fmt.Errorf("resolving %s: %w", r, err)
	}
	return l.at(digest), nil
}

// manifest fetches a manifest by tag or digest. What the registry says of its
// digest counts for nothing; the bytes do.
func (s *session) manifest(ctx context.Context, ref string, most int64) (*manifest, skillhub.Digest, error) {
	resp, err := s.get(ctx, s.meta, "/manifests/"+ref, manifestTypes)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err != nil {
		return nil, "", err
	}
	if int64(len(b)) > most {
		return nil, "", fmt.Errorf("the manifest is over %d bytes: %w", most, abi.ErrTooLarge)
	}
	digest := skillhub.DigestOf(b)
	if strings.HasPrefix(ref, "sha256:") && string(digest) != ref {
		return nil, "", fmt.Errorf("the manifest: %w: %s, not %s", skillhub.ErrMismatch, digest, ref)
	}
	m, err := parseManifest(b, resp.Header.Get("Content-Type"))
	return m, digest, err
}

// content writes what a manifest holds: a package's archive, or a module.
func (s *session) content(ctx context.Context, m *manifest, w io.Writer) (skillhub.Form, error) {
	var modules []descriptor
	for _, l := range m.Layers {
		switch {
		case l.MediaType == LayerType:
			if len(m.Layers) != 1 {
				return "", errors.New("a package of elfhost is one layer, and this manifest has more")
			}
			b, err := l.check(skillhub.MaxArchive)
			if err != nil {
				return "", err
			}
			return skillhub.Archive, s.copy(ctx, b, w)
		case slices.Contains(moduleTypes, l.MediaType):
			modules = append(modules, l)
		}
	}
	switch {
	case len(modules) > 1:
		return "", fmt.Errorf("the image has %d Wasm modules, and which is meant is not said", len(modules))
	case len(modules) == 1:
		b, err := modules[0].check(pack.MaxFile)
		if err != nil {
			return "", err
		}
		return skillhub.Module, s.copy(ctx, b, w)
	case m.ArtifactType == ArtifactType:
		return "", errors.New("the package has no layer of the type " + LayerType)
	}
	return skillhub.Module, s.fromImage(ctx, m, w)
}

// copy streams a blob and holds it against its digest and size (HUB-05).
func (s *session) copy(ctx context.Context, b blob, w io.Writer) error {
	r, err := s.blobOf(ctx, b)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(w, r) // which ends where verify says so
	return err
}

// blobOf opens a blob.
func (s *session) blobOf(ctx context.Context, b blob) (*checked, error) {
	resp, err := s.get(ctx, s.blob, "/blobs/"+string(b.digest), nil)
	if err != nil {
		return nil, err
	}
	return &checked{body: resp.Body, want: b, left: b.size, h: sha256.New()}, nil
}

// get sends a request and turns every answer that is no answer into an error.
func (s *session) get(ctx context.Context, c *auth.Client, path string, accept []string) (*http.Response, error) {
	ctx = auth.AppendRepositoryScope(ctx, s.parsed(), s.actions...)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base()+path, nil)
	if err != nil {
		return nil, err
	}
	for _, a := range accept {
		req.Header.Add("Accept", a)
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, plainError(err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, s.answered(resp)
}

// checked is a blob that ends with an error unless it is what was promised.
type checked struct {
	body io.ReadCloser
	want blob
	left int64
	h    hash.Hash
}

func (c *checked) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, c.verify()
	}
	if int64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.body.Read(p)
	c.h.Write(p[:n])
	c.left -= int64(n)
	if err == io.EOF && c.left > 0 {
		err = fmt.Errorf("the blob %s: %w: it ends %d bytes early", c.want.digest.Short(), skillhub.ErrMismatch, c.left)
	} else if err == io.EOF {
		err = nil // verify says it
	}
	return n, err
}

// verify reads what is left and compares the digest. It returns io.EOF if all
// is well and nothing was left, so that Read ends with it.
func (c *checked) verify() error {
	if c.left > 0 {
		if _, err := io.Copy(io.Discard, c); err != nil {
			return err
		}
	}
	if got := skillhub.DigestSum(c.h.Sum(nil)); got != c.want.digest {
		return fmt.Errorf("the blob: %w: %s, not %s", skillhub.ErrMismatch, got, c.want.digest)
	}
	return io.EOF
}

func (c *checked) Close() error { return c.body.Close() }

// tally counts and hashes what passes.
type tally struct {
	w io.Writer
	h hash.Hash
	n int64
}

func (t *tally) Write(p []byte) (int, error) {
	n, err := t.w.Write(p)
	t.h.Write(p[:n])
	t.n += int64(n)
	return n, err
}
