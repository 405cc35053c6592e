// Package skillhub holds what all parts of the hub speak of: how a package is
// named, what identifies its bytes, what a hub says of it, and where packages
// come from. It runs no code, and it reaches nothing by itself.
//
// Below it: pack (the package's format), sign (keys and signatures), keep
// (packages on this machine and elfhost.lock), hub, serve, oci, scan.
package skillhub

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/elfhost/elfhost/abi"
)

// MaxArchive bounds a package's archive, in bytes. Sources stop there.
const MaxArchive = 64 << 20

// Errors that sources return, wrapped with what they are about.
var (
	// ErrNotFound is a package, a version or a hub that is not there.
	ErrNotFound = errors.New("not found")
	// ErrExpired is metadata that is too old to install from. What is pinned
	// keeps working.
	ErrExpired = errors.New("the hub's metadata has expired")
	// ErrOffline is what would need the network where none may be used.
	ErrOffline = errors.New("the network may not be used")
	// ErrMismatch is bytes that are not those that were promised.
	ErrMismatch = errors.New("the bytes are not those that were promised")
	// ErrRollback is an older state than the one that was seen before.
	ErrRollback = errors.New("this is older than what was seen before")
)

// Source is where packages come from: a hub, a registry, a web server, a
// folder. It is safe for concurrent use.
type Source interface {
	// Fetch resolves the reference and writes the package to dst, MaxArchive
	// bytes at the most. Where it knows a digest or a size beforehand, it fails
	// with ErrMismatch when the bytes differ; whatever was written then counts
	// for nothing.
	Fetch(ctx context.Context, r Ref, dst io.Writer) (Fetched, error)
}

// Form is what a source wrote.
type Form string

// The forms of a package.
const (
	Archive Form = "elfpkg" // an archive of skillhub/pack
	Module  Form = "wasm"   // one Wasm module without a manifest of ours
)

// Fetched says what a source wrote, and who stands for it.
type Fetched struct {
	Form   Form   // "" is Archive
	Digest Digest // that was promised; "" where nobody promised one
	Size   int64
	// Source is where it came from, exact enough to fetch the same bytes again:
	// "acme/fetch@1.2.0", "oci://ghcr.io/acme/fetch@sha256:…". It parses as a Ref.
	Source string
	// Vouched says what stands for these bytes beside the package's own
	// signature, for people: "hub acme, metadata of 2026-11-30". "" is nothing.
	Vouched string
	// Listing is what the hub said; nil where the source has none. The package
	// itself is held against it.
	Listing *Listing
}

// Kind of a package: what is in it.
type Kind string

// The kinds of packages.
const (
	Text Kind = "skill"      // SKILL.md and resources
	Tool Kind = "tool"       // a module
	Both Kind = "skill+tool" // both
)

// Listing is one version of a package as a hub lists it. The texts are the
// publisher's: they are data, escaped wherever a person or a model sees them.
type Listing struct {
	Hub         string     `json:"hub,omitempty"` // its name on this machine; set by the client
	Name        string     `json:"name"`
	Version     string     `json:"version"`
	Publisher   string     `json:"publisher,omitempty"`
	KeyID       string     `json:"keyId,omitempty"` // of the signature, as minisign writes it; "" is unsigned
	Description string     `json:"description,omitempty"`
	Kind        Kind       `json:"kind"`
	Needs       []abi.Need `json:"needs,omitempty"`
	Tools       []string   `json:"tools,omitempty"`  // their names
	Digest      Digest     `json:"digest,omitempty"` // of the archive; a search does not know it
	Size        int64      `json:"size"`
	Published   time.Time  `json:"published,omitzero"`
	Installs    int64      `json:"installs,omitempty"`
	Yanked      string     `json:"yanked,omitempty"` // the reason; "" is not
}

// Ref is the reference that fetches exactly this version.
func (l Listing) Ref() Ref {
	return Ref{Kind: Named, Hub: l.Hub, Name: l.Name, Version: l.Version}
}
