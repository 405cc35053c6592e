package hub

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/skillhub"
)

// Document is all that a hub says of one package.
type Document struct {
	Format   int                `json:"format"` // 1
	Name     string             `json:"name"`
	Owner    string             `json:"owner,omitempty"` // the public key that has the name; "": nobody signed
	Versions []skillhub.Listing `json:"versions"`        // oldest first
}

const maxVersions = 10_000

// ParseDocument reads a document, and refuses one that says anything that a
// client would trip over.
func ParseDocument(b []byte, name string) (Document, error) {
	var d Document
	dec := json.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&d); err != nil {
		return d, fmt.Errorf("the document of %q: %w", name, err)
	}
	switch {
	case d.Format != 1:
		return d, fmt.Errorf("the document of %q has format %d: a newer elfhost reads it", name, d.Format)
	case d.Name != name:
		return d, fmt.Errorf("the document of %q is about %.64q", name, d.Name)
	case len(d.Owner) > 512:
		return d, fmt.Errorf("the document of %q names an owner that is no key", name)
	case len(d.Versions) > maxVersions:
		return d, fmt.Errorf("the document of %q lists more than %d versions", name, maxVersions)
	}
	for i := range d.Versions {
		if err := checkListing(&d.Versions[i]); err != nil {
			return d, fmt.Errorf("the document of %q: %w", name, err)
		}
		if d.Versions[i].Name != name {
			return d, fmt.Errorf("the document of %q lists %.64q", name, d.Versions[i].Name)
		}
	}
	return d, nil
}

// Bounds of a listing.
const (
	maxDescription = 4096
	maxNeeds       = 256
	maxTools       = 256
)

func checkListing(l *skillhub.Listing) error {
	if err := abi.CheckName(l.Name); err != nil {
		return err
	}
	if err := skillhub.CheckVersion(l.Version); err != nil {
		return err
	}
	switch {
	case !l.Digest.Valid():
		return fmt.Errorf("version %s has no digest", l.Version)
	case l.Size < 1 || l.Size > skillhub.MaxArchive:
		return fmt.Errorf("version %s cannot have %d bytes", l.Version, l.Size)
	}
	return checkTexts(l)
}

// checkTexts bounds what is shown to people and models.
func checkTexts(l *skillhub.Listing) error {
	switch {
	case len(l.Publisher) > 256 || len(l.KeyID) > 64 || len(l.Yanked) > maxDescription || len(l.Description) > maxDescription:
		return fmt.Errorf("a text of %s is too long", l.Name)
	case len(l.Needs) > maxNeeds || len(l.Tools) > maxTools:
		return fmt.Errorf("%s lists too many needs or tools", l.Name)
	case l.Kind != skillhub.Text && l.Kind != skillhub.Tool && l.Kind != skillhub.Both:
		return fmt.Errorf("%s is of the kind %.32q, which there is not", l.Name, l.Kind)
	case l.Installs < 0:
		return errors.New("a count below zero")
	}
	return nil
}

func (d *Document) encode() ([]byte, error) { return json.Marshal(d) }

// Find picks a version: the named one, or the newest that is neither yanked nor
// a prerelease; of a package that has only prereleases the newest of those.
func (d *Document) Find(version string) (skillhub.Listing, error) {
	if version != "" {
		for _, l := range d.Versions {
			if l.Version == version {
				return l, nil
			}
		}
		return skillhub.Listing{}, fmt.Errorf("%s has no version %s: %w", d.Name, version, skillhub.ErrNotFound)
	}
	if l := d.newest(); l != nil {
		return *l, nil
	}
	if len(d.Versions) == 0 {
		return skillhub.Listing{}, fmt.Errorf("%s has no versions: %w", d.Name, skillhub.ErrNotFound)
	}
	var last skillhub.Listing
	for _, l := range d.Versions {
		if last.Version == "" || newer(l.Version, last.Version) {
			last = l
		}
	}
	return skillhub.Listing{}, fmt.Errorf("every version of %s is withdrawn, %s because %q: %w", d.Name, last.Version, last.Yanked, skillhub.ErrNotFound)
}

func (d *Document) newest() *skillhub.Listing {
	var best *skillhub.Listing
	for i := range d.Versions {
		l := &d.Versions[i]
		if l.Yanked != "" {
			continue
		}
		if best == nil || newer(l.Version, best.Version) {
			best = l
		}
	}
	return best
}

func newer(a, b string) bool {
	if pa, pb := skillhub.Prerelease(a), skillhub.Prerelease(b); pa != pb {
		return pb
	}
	return skillhub.CompareVersions(a, b) > 0
}

func (d *Document) last() skillhub.Listing { return d.Versions[len(d.Versions)-1] }

func (d *Document) add(l skillhub.Listing) {
	d.Versions = append(slices.Clip(d.Versions), l)
}
