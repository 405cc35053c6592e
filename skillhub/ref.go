package skillhub

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/elfhost/elfhost/abi"
)

// RefKind says where a reference leads.
type RefKind string

// The kinds of references.
const (
	Named RefKind = "hub"   // [HUB/]NAME[@VERSION]
	OCI   RefKind = "oci"   // oci://HOST/REPOSITORY[:TAG][@sha256:…]
	URL   RefKind = "https" // https://…#sha256=…
	Local RefKind = "file"  // a folder, or an archive
)

// Ref names a package to fetch.
type Ref struct {
	Kind    RefKind
	Hub     string // of Named: its name on this machine; "" is any
	Name    string // of Named
	Version string // of Named; "" is the newest
	// Location is the rest: of OCI "host/repository[:tag]", of URL the address
	// without its fragment, of Local a path of this machine.
	Location string
	Digest   Digest // of OCI, if given, and of URL; "" otherwise
}

// MaxRef bounds a reference, in bytes.
const MaxRef = 2048

// ParseRef reads what a person types. What begins with "./", "../", "/", "~/",
// a drive, or ends with ".elfpkg" is a path; "a/b" is a package of a hub.
func ParseRef(s string) (Ref, error) {
	switch {
	case s == "":
		return Ref{}, errors.New("a package's name is missing")
	case len(s) > MaxRef:
		return Ref{}, fmt.Errorf("%.32q… is longer than %d bytes", s, MaxRef)
	case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return Ref{}, fmt.Errorf("%q contains control characters", s)
	}
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		switch scheme {
		case "oci":
			return parseOCI(s, rest)
		case "https":
			return parseURL(s)
		case "file":
			if !strings.HasPrefix(rest, "/") {
				return Ref{}, fmt.Errorf("%q: a file: address has no host: file:///path", s)
			}
			return Ref{Kind: Local, Location: filepath.FromSlash(rest)}, nil
		case "http":
			return Ref{}, fmt.Errorf("%q: packages come over https", s)
		}
		return Ref{}, fmt.Errorf("%q: sources are a hub's NAME, oci://, https://…#sha256=…, file: and paths", s)
	}
	if p, ok := strings.CutPrefix(s, "file:"); ok && p != "" {
		return Ref{Kind: Local, Location: filepath.FromSlash(p)}, nil
	}
	if isPath(s) {
		return Ref{Kind: Local, Location: s}, nil
	}
	return parseName(s)
}

func isPath(s string) bool {
	for _, p := range []string{"./", "../", "/", "~/", `.\`, `..\`, `\`} {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	drive := len(s) > 2 && s[1] == ':' && (s[2] == '\\' || s[2] == '/')
	return s == "." || s == ".." || drive || strings.HasSuffix(s, Ext)
}

// Ext is how the names of archives end.
const Ext = ".elfpkg"

func parseName(s string) (Ref, error) {
	r := Ref{Kind: Named}
	name, version, versioned := strings.Cut(s, "@")
	if hub, rest, ok := strings.Cut(name, "/"); ok {
		if err := abi.CheckName(hub); err != nil {
			return Ref{}, fmt.Errorf("%q is no package of a hub (%w); for a path, begin with ./", s, err)
		}
		r.Hub, name = hub, rest
	}
	if err := abi.CheckName(name); err != nil {
		return Ref{}, fmt.Errorf("%q is no package's name (%w); for a path, begin with ./", s, err)
	}
	r.Name = name
	if versioned {
		if err := CheckVersion(version); err != nil {
			return Ref{}, fmt.Errorf("%q: %w", s, err)
		}
		r.Version = version
	}
	return r, nil
}

// CheckVersion holds for a version as part of names and paths.
func CheckVersion(v string) error {
	if v == "" || len(v) > 64 {
		return fmt.Errorf("version %.16q: 1 to 64 characters", v)
	}
	for i := 0; i < len(v); i++ {
		c := v[i]
		ok := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
			i > 0 && strings.IndexByte(".-+_", c) >= 0
		if !ok {
			return fmt.Errorf("version %q: letters, digits, '.', '-', '+' and '_', a letter or digit first", v)
		}
	}
	if strings.Contains(v, "..") {
		return fmt.Errorf("version %q has two dots in a row", v)
	}
	return nil
}

func parseOCI(s, rest string) (Ref, error) {
	r := Ref{Kind: OCI, Location: rest}
	if loc, digest, ok := strings.Cut(rest, "@"); ok {
		d, err := ParseDigest(digest)
		if err != nil {
			return Ref{}, fmt.Errorf("%q: %w", s, err)
		}
		r.Location, r.Digest = loc, d
	}
	host, repo, ok := strings.Cut(r.Location, "/")
	if !ok || host == "" || repo == "" || strings.ContainsAny(r.Location, " ?#\\") || strings.Contains(r.Location, "..") {
		return Ref{}, fmt.Errorf("%q is not oci://HOST/REPOSITORY[:TAG]", s)
	}
	return r, nil
}

func parseURL(s string) (Ref, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return Ref{}, fmt.Errorf("%q is not an address", s)
	}
	if u.User != nil {
		return Ref{}, errors.New("an address with a user or a password in it is refused")
	}
	sum, ok := strings.CutPrefix(u.Fragment, "sha256=")
	if !ok {
		return Ref{}, fmt.Errorf("%q does not say which bytes are meant: append #sha256=DIGEST", s)
	}
	d, err := ParseDigest(digestPrefix + sum)
	if err != nil {
		return Ref{}, err
	}
	u.Fragment, u.RawFragment = "", ""
	return Ref{Kind: URL, Location: u.String(), Digest: d}, nil
}

// String is a text that ParseRef reads as r.
func (r Ref) String() string {
	switch r.Kind {
	case Named:
		s := r.Name
		if r.Hub != "" {
			s = r.Hub + "/" + s
		}
		if r.Version != "" {
			s += "@" + r.Version
		}
		return s
	case OCI:
		s := "oci://" + r.Location
		if r.Digest != "" {
			s += "@" + string(r.Digest)
		}
		return s
	case URL:
		return r.Location + "#sha256=" + r.Digest.Hex()
	}
	if isPath(r.Location) {
		return r.Location
	}
	return "file:" + filepath.ToSlash(r.Location)
}
