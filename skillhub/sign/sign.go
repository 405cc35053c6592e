// Package sign makes and checks the signature of a package: minisign's format
// (Ed25519, pre-hashed) over a statement that names everything a person agrees
// to: name, version, publisher, code, needs, tool definitions, files.
//
// A signature says that whoever holds a key made this package. Whose key it is,
// nobody says: the first key of a publisher that a person accepted is pinned,
// and a policy may name keys.
package sign

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"aead.dev/minisign"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/internal/config/manifest"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/pack"
)

// Format is the version of statements.
const Format = "statement/1"

// ErrSignature is in the error for a package whose signature does not hold.
var ErrSignature = errors.New("the signature does not hold")

// Statement is what a publisher signs. Its one encoding is the bytes of
// pack.StatementFile.
type Statement struct {
	Format    string          `json:"elf"`
	Name      string          `json:"name"`
	Version   string          `json:"version"`
	Publisher string          `json:"publisher"`
	Key       string          `json:"key"`             // public key, as minisign writes it: "RWQ…"
	Wasm      skillhub.Digest `json:"wasm,omitempty"`  // of plugin.wasm
	Needs     string          `json:"needs"`           // manifest.NeedsHash
	Tools     skillhub.Digest `json:"tools,omitempty"` // skillhub.ToolsDigest
	Files     skillhub.Digest `json:"files"`           // pack.Contents.Digest
}

// Signer is whose signature a package carries.
type Signer struct {
	Publisher string // as the package names it; nothing proves it but the pin
	Key       string // "RWQ…"
}

// KeyID is the short name of the key, as minisign shows it.
func (s Signer) KeyID() string {
	var k minisign.PublicKey
	if err := k.UnmarshalText([]byte(s.Key)); err != nil {
		return ""
	}
	return keyID(k.ID())
}

func keyID(id uint64) string { return fmt.Sprintf("%016X", id) }

// Short is enough of the key for a person to compare: "RWQ…k3Xm".
func (s Signer) Short() string {
	if len(s.Key) < 12 {
		return s.Key
	}
	return s.Key[:4] + "…" + s.Key[len(s.Key)-4:]
}

// Of states what a package is. It is signed by nobody yet.
func Of(c *pack.Contents) (Statement, error) {
	m := c.Manifest
	if m == nil {
		return Statement{}, fmt.Errorf("a package without %s cannot be signed", pack.ManifestFile)
	}
	tools, err := skillhub.ToolsDigest(Tools(c))
	if err != nil {
		return Statement{}, err
	}
	wasm, _ := c.File(pack.ModuleFile)
	return Statement{
		Format: Format, Name: m.Name, Version: m.Version, Publisher: m.Publisher,
		Wasm: wasm.Digest, Needs: manifest.NeedsHash(m.Needs), Tools: tools, Files: c.Digest(),
	}, nil
}

// Tools are the definitions that the package declares; empty where only running
// the module would tell.
func Tools(c *pack.Contents) []abi.ToolDecl {
	switch {
	case c.Description != nil:
		return c.Description.Tools
	case c.Manifest != nil:
		return c.Manifest.Tools
	}
	return nil
}

func (s Statement) encode() []byte {
	b, _ := json.MarshalIndent(s, "", "  ") // strings always marshal
	return append(b, '\n')
}

// untrusted is the first line of every signature; nothing signs it, so it is
// held against this text.
const untrusted = "signature of a package, by elfhost"

func (s Statement) comment() string { return "elfhost package " + s.Name + " " + s.Version }

// Make signs what c is. The two files go into the package.
func Make(c *pack.Contents, key Secret) (statement, signature []byte, err error) {
	s, err := Of(c)
	if err != nil {
		return nil, nil, err
	}
	if s.Publisher == "" {
		return nil, nil, fmt.Errorf("%s names no publisher, so nobody would know whose signature it is", pack.ManifestFile)
	}
	s.Key = key.Public()
	statement = s.encode()
	r := minisign.NewReader(bytes.NewReader(statement))
	if _, err := r.Read(make([]byte, len(statement)+1)); err != nil {
		return nil, nil, err
	}
	return statement, r.SignWithComments(key.key, s.comment(), untrusted), nil
}

// Verify checks the signature of a package against everything that is in it. A
// package that is not signed gives nil. The error is an ErrSignature and says
// what differs.
func Verify(c *pack.Contents) (*Signer, error) {
	if c.Statement == nil {
		return nil, nil
	}
	fail := func(format string, args ...any) (*Signer, error) {
		return nil, fmt.Errorf("%w: %w", ErrSignature, fmt.Errorf(format, args...))
	}
	var s Statement
	d := json.NewDecoder(bytes.NewReader(c.Statement))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return fail("%s: %w", pack.StatementFile, err)
	}
	if !bytes.Equal(s.encode(), c.Statement) {
		return fail("%s is not written as a statement is", pack.StatementFile)
	}
	var key minisign.PublicKey
	if err := key.UnmarshalText([]byte(s.Key)); err != nil || key.String() != s.Key {
		return fail("%s names no minisign key", pack.StatementFile)
	}
	if err := checkSignature(s, key, c); err != nil {
		return fail("%w", err)
	}
	want, err := Of(c)
	if err != nil {
		return fail("%w", err)
	}
	want.Key = s.Key
	if diff := s.differs(want); diff != "" {
		return fail("it is for another %s", diff)
	}
	return &Signer{Publisher: s.Publisher, Key: s.Key}, nil
}

func checkSignature(s Statement, key minisign.PublicKey, c *pack.Contents) error {
	var sig minisign.Signature
	if err := sig.UnmarshalText(c.Signature); err != nil {
		return fmt.Errorf("%s: %w", pack.SignatureFile, err)
	}
	text, err := sig.MarshalText()
	if err != nil || !bytes.Equal(text, c.Signature) || sig.UntrustedComment != untrusted || sig.TrustedComment != s.comment() {
		return fmt.Errorf("%s is not written as a signature of this package is", pack.SignatureFile)
	}
	if sig.Algorithm != minisign.HashEdDSA || sig.KeyID != key.ID() || !minisign.Verify(key, c.Statement, c.Signature) {
		return fmt.Errorf("it was not made with the key %s over %s", keyID(key.ID()), pack.StatementFile)
	}
	return nil
}

// differs names the first thing in which two statements differ.
func (s Statement) differs(o Statement) string {
	for _, x := range []struct{ what, a, b string }{
		{"format", s.Format, o.Format}, {"name", s.Name, o.Name}, {"version", s.Version, o.Version},
		{"publisher", s.Publisher, o.Publisher}, {"module", string(s.Wasm), string(o.Wasm)}, {"list of needs", s.Needs, o.Needs},
		{"set of tool definitions", string(s.Tools), string(o.Tools)}, {"set of files", string(s.Files), string(o.Files)},
	} {
		if x.a != x.b {
			return x.what
		}
	}
	return ""
}

// ParseKey checks a public key as people write it: "RWQ…", or a minisign.pub.
func ParseKey(text string) (string, error) {
	var k minisign.PublicKey
	if err := k.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil {
		return "", fmt.Errorf("%.80q is no minisign public key", text)
	}
	if _, err := base64.StdEncoding.DecodeString(k.String()); err != nil {
		return "", err
	}
	return k.String(), nil
}
