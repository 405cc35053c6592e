// Package hub is a hub of packages: making and keeping one (Author), and using
// one (Client, Set).
//
// A hub is static files. Metadata by The Update Framework (TUF, specification
// 1.0.31) says which files belong to it; rolling it back, freezing it and
// mixing its states are what TUF refuses. A folder, a web server, a mirror on a
// stick and one file that holds a mirror are all the same hub, and the same
// code verifies them:
//
//	metadata/N.root.json                 who may sign what; every version stays
//	metadata/root.json                   a copy of the newest
//	metadata/timestamp.json              what is current; renewed often
//	metadata/N.snapshot.json             the versions of all the rest
//	metadata/N.targets.json              hands the files out to hash bins (TAP 15)
//	metadata/N.packages-XX.json          one bin: the documents of some packages
//	packages/NAME/SHA256.versions.json   a document: all versions of one package
//	index/SHA256.packages.index          what searching needs of all packages
//	blobs/sha256/XX/SHA256               the archives
//
// A document is a file of TUF (a target), and holds the digests of archives:
// who installs a package reads four small files, one bin, one document and the
// archive, however large the hub is.
package hub

import (
	"fmt"
	"strings"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/elfhost/elfhost/skillhub"
)

// The roles of a hub. All but Packages are TUF's own.
const (
	Root      = metadata.ROOT
	Targets   = metadata.TARGETS
	Packages  = "packages" // the hash bins, and with them every package
	Snapshot  = metadata.SNAPSHOT
	Timestamp = metadata.TIMESTAMP
)

// Roles lists them in the order in which they stand for one another.
func Roles() []string { return []string{Root, Targets, Packages, Snapshot, Timestamp} }

// Bounds of what a client reads of a hub. The metadata that is signed states
// lengths of its own, which hold as well.
const (
	maxRoot      = 512 << 10
	maxTimestamp = 16 << 10
	maxSnapshot  = 2 << 20
	maxTargets   = 5 << 20
	maxDocument  = 4 << 20
	maxIndex     = 32 << 20  // compressed
	maxIndexText = 512 << 20 // decompressed
	maxRotations = 256       // versions of the root that are walked at once
)

const (
	metadataDir = "metadata"
	indexTarget = "index/packages.index"
)

// documentTarget is the path of a package's document, as TUF knows it.
func documentTarget(name string) string { return "packages/" + name + "/versions.json" }

// blobPath is where an archive lies.
func blobPath(d skillhub.Digest) string {
	x := d.Hex()
	return "blobs/sha256/" + x[:2] + "/" + x
}

// metadataPath is where the metadata of a role lies.
func metadataPath(role string, version int64) string {
	if role == Timestamp {
		return metadataDir + "/timestamp.json"
	}
	return fmt.Sprintf("%s/%d.%s.json", metadataDir, version, role)
}

// targetPath is where a target lies: the digest stands before its last name.
func targetPath(target string, d skillhub.Digest) string {
	i := strings.LastIndexByte(target, '/')
	return target[:i+1] + d.Hex() + "." + target[i+1:]
}

// TimestampDays is how long a timestamp counts, if the author does not say
// otherwise. A hub is signed anew within that time.
const TimestampDays = 14

// lifetimes are how long the metadata of each role counts, in days, where the
// author does not say otherwise. A hub that is not renewed stops being
// installed from when its timestamp expires: that is what a client has against
// one that is frozen.
var lifetimes = map[string]int{Root: 730, Targets: 365, Packages: 365, Snapshot: 90, Timestamp: TimestampDays}

// expiry is when metadata that is signed now expires.
func expiry(now time.Time, days int) time.Time {
	return now.UTC().Truncate(time.Second).AddDate(0, 0, days)
}
