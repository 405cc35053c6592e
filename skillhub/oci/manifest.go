package oci

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/skillhub"
)

// Media types of manifests that are read.
const (
	imageManifest  = "application/vnd.oci.image.manifest.v1+json"
	imageIndex     = "application/vnd.oci.image.index.v1+json"
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	emptyConfig    = "application/vnd.oci.empty.v1+json"
)

var manifestTypes = []string{imageManifest, imageIndex, dockerManifest, dockerList}

// moduleTypes are the layers that are one Wasm module: of the CNCF's Wasm
// artifacts, and those that were in use before.
var moduleTypes = []string{
	"application/wasm",
	"application/vnd.wasm.content.layer.v1+wasm",
	"application/vnd.module.wasm.content.layer.v1+wasm",
}

// tarTypes are the layers of images.
var tarTypes = []string{
	"application/vnd.oci.image.layer.v1.tar", "application/vnd.oci.image.layer.v1.tar+gzip",
	"application/vnd.docker.image.rootfs.diff.tar", "application/vnd.docker.image.rootfs.diff.tar.gzip",
}

// descriptor is what a manifest says of a blob.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Platform    *platform         `json:"platform,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// manifest is an image manifest or an index, as far as it is read.
type manifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType,omitempty"`
	ArtifactType  string            `json:"artifactType,omitempty"`
	Config        *descriptor       `json:"config,omitempty"`
	Layers        []descriptor      `json:"layers,omitempty"`
	Manifests     []descriptor      `json:"manifests,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

// parseManifest reads a manifest. header is the media type that the registry
// answered with; the document's own wins, and must not contradict it.
func parseManifest(b []byte, header string) (*manifest, error) {
	var m manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("the manifest is not JSON of the right form: %w", err)
	}
	header, _, _ = strings.Cut(header, ";")
	header = strings.TrimSpace(header)
	if m.MediaType == "" {
		m.MediaType = header
	}
	switch {
	case !slices.Contains(manifestTypes, m.MediaType):
		return nil, fmt.Errorf("the manifest's type %.100q is none that elfhost reads", m.MediaType)
	case slices.Contains(manifestTypes, header) && header != m.MediaType:
		return nil, fmt.Errorf("the registry calls the manifest %q and the manifest itself %q", header, m.MediaType)
	case m.SchemaVersion != 2:
		return nil, fmt.Errorf("the manifest has schema version %d, not 2", m.SchemaVersion)
	case len(m.Layers) > maxLayers || len(m.Manifests) > maxLayers:
		return nil, fmt.Errorf("the manifest lists more than %d layers", maxLayers)
	}
	if m.isIndex() == (len(m.Manifests) == 0) || m.isIndex() && len(m.Layers) > 0 { // both: two readers could see two things
		return nil, errors.New("the manifest is neither an image's nor an index")
	}
	return &m, nil
}

func (m *manifest) isIndex() bool { return m.MediaType == imageIndex || m.MediaType == dockerList }

// choose picks the image of an index: one for Wasm, else one that some other
// platform has, since what is looked for in it has none.
func (m *manifest) choose() (descriptor, error) {
	images := slices.DeleteFunc(slices.Clone(m.Manifests), func(d descriptor) bool {
		return d.Annotations["vnd.docker.reference.type"] != "" || d.MediaType != imageManifest && d.MediaType != dockerManifest
	})
	for _, fits := range []func(platform) bool{
		func(p platform) bool { return p.Architecture == "wasm" || p.OS == "wasi" || p.OS == "wasip1" },
		func(p platform) bool { return p.Architecture == "amd64" && p.OS == "linux" },
		func(platform) bool { return true },
	} {
		for _, d := range images {
			p := platform{}
			if d.Platform != nil {
				p = *d.Platform
			}
			if fits(p) {
				return d, nil
			}
		}
	}
	return descriptor{}, errors.New("the index lists no image")
}

// blob is a layer that is to be fetched.
type blob struct {
	digest skillhub.Digest
	size   int64
}

// check takes a descriptor at its word only if it can be kept to it.
func (d descriptor) check(most int64) (blob, error) {
	digest, err := skillhub.ParseDigest(d.Digest)
	switch {
	case err != nil:
		return blob{}, err
	case d.Size < 0 || d.Size > most:
		return blob{}, fmt.Errorf("the layer %s has %d bytes, more than the %d that it may have", digest.Short(), d.Size, most)
	}
	return blob{digest, d.Size}, nil
}
