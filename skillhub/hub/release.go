package hub

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/pack"
	"github.com/elfhost/elfhost/skillhub/sign"
)

// ErrUnsigned is a package that nobody signed, where a signature is asked for.
var ErrUnsigned = errors.New("the package is not signed")

// ReadRelease reads an archive as one that is to be published, and refuses what
// installing it would refuse of its form, scripts, and a signature that does not
// hold. Its module is judged where it is installed.
func ReadRelease(ctx context.Context, file string) (Release, error) {
	r, err := readRelease(ctx, file)
	if err != nil {
		return r, fmt.Errorf("reading the package %q: %w", file, err)
	}
	return r, nil
}

func readRelease(ctx context.Context, file string) (Release, error) {
	in, err := os.Open(file)
	if err != nil {
		return Release{}, err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return Release{}, err
	}
	if !st.Mode().IsRegular() {
		return Release{}, errors.New("it is not an archive; `elfhost plugin pack` makes one of a folder")
	}
	sum := sha256.New()
	c, err := pack.Unpack(ctx, io.TeeReader(in, sum), nil, pack.Options{})
	if err != nil {
		return Release{}, err
	}
	if _, err := io.Copy(sum, io.LimitReader(in, skillhub.MaxArchive)); err != nil {
		return Release{}, err
	}
	signer, err := sign.Verify(c)
	if err != nil {
		return Release{}, err
	}
	r := Release{Archive: file, Listing: listingOf(c)}
	r.Listing.Digest, r.Listing.Size = skillhub.DigestSum(sum.Sum(nil)), st.Size()
	if signer != nil {
		r.Key, r.Listing.KeyID = signer.Key, signer.KeyID()
	}
	return r, nil
}

// listingOf is what a hub says of a package, but for its bytes and its signer.
func listingOf(c *pack.Contents) skillhub.Listing {
	m := c.Manifest
	l := skillhub.Listing{
		Name: m.Name, Version: m.Version, Publisher: m.Publisher, Description: m.Description, Kind: c.Kind(), Needs: m.Needs,
	}
	for _, t := range sign.Tools(c) {
		l.Tools = append(l.Tools, t.Name)
	}
	return l
}
