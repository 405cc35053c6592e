package skillhub

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Digest identifies bytes: "sha256:" and 64 lower-case hex digits. Paths are
// made of digests, so one that was read is always checked by ParseDigest.
type Digest string

const digestPrefix = "sha256:"

// ParseDigest takes nothing but the one form (HUB-06).
func ParseDigest(s string) (Digest, error) {
	d := Digest(s)
	if !d.Valid() {
		return "", fmt.Errorf("%.80q is not a digest: sha256: and 64 lower-case hex digits", s)
	}
	return d, nil
}

// DigestOf is the digest of b.
func DigestOf(b []byte) Digest {
	sum := sha256.Sum256(b)
	return Digest(digestPrefix + hex.EncodeToString(sum[:]))
}

// DigestSum makes a digest of a SHA-256 sum.
func DigestSum(sum []byte) Digest { return Digest(digestPrefix + hex.EncodeToString(sum)) }

// Valid reports whether d has the one form.
func (d Digest) Valid() bool {
	x, ok := strings.CutPrefix(string(d), digestPrefix)
	if !ok || len(x) != sha256.Size*2 {
		return false
	}
	for i := 0; i < len(x); i++ {
		if c := x[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Hex is the digest without its prefix, safe as a file's name. It is "" for
// what is no digest.
func (d Digest) Hex() string {
	if !d.Valid() {
		return ""
	}
	return string(d[len(digestPrefix):])
}

// Short is enough of the digest for a person to compare.
func (d Digest) Short() string {
	if !d.Valid() {
		return "?"
	}
	return string(d[:len(digestPrefix)+12])
}

// UnmarshalText refuses every other form.
func (d *Digest) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDigest(string(b))
	return err
}
