package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/pack"
)

// ErrTaken is a tag that names another package already.
var ErrTaken = errors.New("the tag names another package already")

// Publication is a package that is to be pushed.
type Publication struct {
	Manifest *abi.Manifest // what is in the archive, as it was read from there
	Archive  io.ReadSeeker // from its beginning; it is read again where the registry asks anew
	Digest   skillhub.Digest
	Size     int64
	// Replace lets a tag that names something else name this.
	Replace bool
}

// Push publishes a package under the reference's tag, its version where the
// reference has none, and returns the reference with the digest. The same
// package always makes the same manifest, so pushing it twice does nothing.
func (g *Registry) Push(ctx context.Context, r skillhub.Ref, p Publication) (skillhub.Ref, error) {
	out, err := g.push(ctx, r, p)
	if err != nil {
		return r, fmt.Errorf("publishing %s: %w", r, err)
	}
	return out, nil
}

func (g *Registry) push(ctx context.Context, r skillhub.Ref, p Publication) (skillhub.Ref, error) {
	l, err := locate(r)
	if err != nil {
		return r, err
	}
	if r.Digest != "" {
		return r, errors.New("a package is published under a tag, not under a digest")
	}
	if l.ref == "latest" && !hasTag(r.Location) {
		if l.ref = versionTag(p.Manifest.Version); !isTag(l.ref) {
			return r, fmt.Errorf("the version %q cannot be a tag; name one: oci://HOST/REPOSITORY:TAG", p.Manifest.Version)
		}
	}
	s, err := g.open(l, true)
	if err != nil {
		return r, err
	}
	m, err := manifestOf(p)
	if err != nil {
		return r, err
	}
	desc := ocispec.Descriptor{MediaType: imageManifest, Digest: digest.Digest(skillhub.DigestOf(m)), Size: int64(len(m))}
	switch _, now, err := s.manifest(ctx, l.ref, maxManifest); {
	case err == nil && string(now) == string(desc.Digest):
		return l.at(now), nil
	case err == nil && !p.Replace:
		return r, fmt.Errorf("%w: %s is %s", ErrTaken, l.ref, now)
	case err != nil && !errors.Is(err, skillhub.ErrNotFound) && !p.Replace:
		return r, err
	}
	repo := s.repository()
	for _, b := range []struct {
		desc ocispec.Descriptor
		body io.Reader
	}{
		{ocispec.DescriptorEmptyJSON, bytes.NewReader(ocispec.DescriptorEmptyJSON.Data)},
		{ocispec.Descriptor{MediaType: LayerType, Digest: digest.Digest(p.Digest), Size: p.Size}, p.Archive},
	} {
		b.desc.Data = nil
		if there, err := repo.Blobs().Exists(ctx, b.desc); err != nil {
			return r, plainError(err)
		} else if there {
			continue
		}
		if err := repo.Blobs().Push(ctx, b.desc, b.body); err != nil && !errors.Is(err, errdef.ErrAlreadyExists) {
			return r, plainError(err)
		}
	}
	if err := repo.Manifests().PushReference(ctx, desc, bytes.NewReader(m), l.ref); err != nil {
		return r, plainError(err)
	}
	return l.at(skillhub.Digest(desc.Digest)), nil
}

// manifestOf makes the manifest of a package, without a time in it.
func manifestOf(p Publication) ([]byte, error) {
	m := p.Manifest
	about := map[string]string{ocispec.AnnotationTitle: m.Name, ocispec.AnnotationVersion: m.Version}
	for key, text := range map[string]string{
		ocispec.AnnotationVendor: m.Publisher, ocispec.AnnotationDescription: m.Description, ocispec.AnnotationLicenses: m.License, ocispec.AnnotationURL: m.Homepage,
	} {
		if text != "" {
			about[key] = text
		}
	}
	return json.Marshal(manifest{
		SchemaVersion: 2, MediaType: imageManifest, ArtifactType: ArtifactType,
		Config: &descriptor{MediaType: emptyConfig, Digest: string(ocispec.DescriptorEmptyJSON.Digest), Size: ocispec.DescriptorEmptyJSON.Size},
		Layers: []descriptor{{MediaType: LayerType, Digest: string(p.Digest), Size: p.Size,
			Annotations: map[string]string{ocispec.AnnotationTitle: pack.FileName(m)}}},
		Annotations: about,
	})
}

// repository is the library's client for pushing; pulling is ours, so that what
// is read is bounded in one place.
func (s *session) repository() *remote.Repository {
	return &remote.Repository{Client: s.blob, Reference: s.parsed(), PlainHTTP: s.scheme() == "http", MaxMetadataBytes: maxManifest, SkipReferrersGC: true}
}

func (s *session) parsed() registry.Reference {
	return registry.Reference{Registry: s.host, Repository: s.repo}
}
