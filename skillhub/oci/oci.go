// Package oci fetches packages from OCI registries and publishes them there.
// A reference resolves to the digest of a manifest; every byte that follows is
// held against that digest. Images that were not made for elfhost are taken as
// well, where they hold one Wasm module: see docs/oci.md.
//
// Every request goes through the HTTP broker of host/reach. Nothing that a
// registry answers is larger than was asked for.
package oci

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/skillhub"
)

// What a package is in a registry: an image manifest of this artifact type,
// with the empty config and one layer, the archive as skillhub/pack made it.
const (
	ArtifactType = "application/vnd.elfhost.package.v1"
	LayerType    = "application/vnd.elfhost.package.v1.tar+gzip"
)

// Limits of one fetch. Zero time is the broker's default.
const (
	maxManifest  = 1 << 20
	maxLayers    = 128
	metadataTime = 30 * time.Second
	blobTime     = 10 * time.Minute
)

// Registry is all OCI registries, as one source of packages. It is safe for
// concurrent use.
type Registry struct {
	HTTP *reach.HTTP
	// Rights are those of one fetch or push, from the grant that it asks for: the
	// registry by its name, and public addresses for where it sends one on.
	Rights func(policy.Grant) (policy.Rights, error)
	// Credentials are those of the registries; nil: all are asked without any.
	Credentials Credentials
	// Offline, if not empty, says why the network may not be used.
	Offline string
}

// location is where in which registry a package lies.
type location struct {
	registry string // as it is written: host, or host:port
	host     string // that answers for it
	repo     string
	ref      string // a tag or a digest
}

// locate reads a reference of the kind skillhub.OCI.
func locate(r skillhub.Ref) (location, error) {
	var l location
	if r.Kind != skillhub.OCI {
		return l, fmt.Errorf("%s is not oci://HOST/REPOSITORY", r)
	}
	l.registry, l.repo, _ = strings.Cut(r.Location, "/")
	l.ref = "latest"
	if i := strings.LastIndexByte(l.repo, ':'); i >= 0 {
		l.repo, l.ref = l.repo[:i], l.repo[i+1:]
	}
	l.host = l.registry
	if l.registry == "docker.io" {
		l.host = "registry-1.docker.io"
		if !strings.Contains(l.repo, "/") {
			l.repo = "library/" + l.repo
		}
	}
	switch {
	case !isRepository(l.repo):
		return l, fmt.Errorf("%q is not a repository's name: parts of a-z, 0-9, '.', '_' and '-', parted by '/'", l.repo)
	case !isTag(l.ref):
		return l, fmt.Errorf("%q is not a tag", l.ref)
	}
	if r.Digest != "" {
		l.ref = string(r.Digest)
	}
	if _, err := policy.CheckURL(l.base()); err != nil {
		return l, fmt.Errorf("%q is not a registry: %w", l.registry, err)
	}
	return l, nil
}

// isRepository and isTag follow the distribution specification, 1.1.
func isRepository(s string) bool {
	if s == "" || len(s) > 255 {
		return false
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" || strings.Contains("._-", part[:1]) || strings.Contains("._-", part[len(part)-1:]) {
			return false
		}
	}
	return true
}

func isTag(s string) bool {
	if s == "" || len(s) > 128 || s[0] == '.' || s[0] == '-' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// scheme is http for this machine itself, as Docker has it, and https else.
func (l location) scheme() string {
	host := l.host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if host == "localhost" || err == nil && addr.IsLoopback() {
		return "http"
	}
	return "https"
}

func (l location) base() string { return l.scheme() + "://" + l.host + "/v2/" + l.repo }

// at is the reference of one manifest in this repository.
func (l location) at(d skillhub.Digest) skillhub.Ref {
	return skillhub.Ref{Kind: skillhub.OCI, Location: l.registry + "/" + l.repo, Digest: d}
}

// Place is the address of a reference's repository, for rules of a policy about
// where packages come from: "oci://ghcr.io/acme/fetch".
func Place(r skillhub.Ref) string {
	l, err := locate(r)
	if err != nil {
		return ""
	}
	return "oci://" + l.registry + "/" + l.repo
}

// hasTag reports whether a location names a tag.
func hasTag(loc string) bool {
	_, repo, _ := strings.Cut(loc, "/")
	return strings.Contains(repo, ":")
}

// versionTag is the tag of a version: build metadata is no part of tags.
func versionTag(v string) string { return strings.ReplaceAll(v, "+", "_") }

// session is one fetch or push: its rights and its tokens.
type session struct {
	location
	meta, blob *auth.Client
	actions    []string // of the tokens that are asked for
}

// open makes the clients of one fetch or push. Nothing is sent by it.
func (g *Registry) open(l location, push bool) (*session, error) {
	methods, actions := "GET,HEAD", []string{auth.ActionPull}
	if push {
		methods, actions = "GET,HEAD,POST,PUT,PATCH", append(actions, auth.ActionPush)
	}
	if c, ok := g.Credentials.find(l); ok && c.Refresh != "" && !push {
		methods += ",POST" // that is how a token is had for a refresh token
	}

	if g.Offline != "" {
		return nil, fmt.Errorf("%s: %w", g.Offline, skillhub.ErrOffline)
	}
	// Whoever wrote the registry's name meant that address, a private one too.
	// Where it sends one on, to a token service or to where blobs lie, is public.
	rights, err := g.Rights(policy.Grant{Cap: abi.NetHTTP, Scope: []string{l.scheme() + "://" + l.host + " " + methods, "public " + methods}})
	if err != nil {
		return nil, err
	}
	cache := auth.NewCache()
	client := func(limits reach.HTTPLimits) *auth.Client {
		c := g.HTTP.Client(rights, limits, nil)
		c.Transport = sized{c.Transport}
		return &auth.Client{
			Client: c, Cache: cache, Credential: g.credential(l), ClientID: "elfhost",
			BlockedRealmPrefixes: []netip.Prefix{}, // the broker judges every address itself
		}
	}
	return &session{
		location: l, actions: actions,
		meta: client(reach.HTTPLimits{Time: metadataTime, Body: maxManifest + 1}),
		blob: client(reach.HTTPLimits{Time: blobTime, Body: skillhub.MaxArchive + 1}),
	}, nil
}

// sized tells the length of an answer, which the broker leaves in the header.
type sized struct{ next http.RoundTripper }

func (s sized) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if n, err := strconv.ParseInt(resp.Header.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
		resp.ContentLength = n
	}
	return resp, nil
}
