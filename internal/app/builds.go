package app

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/config/granted"
	"github.com/elfhost/elfhost/internal/config/manifest"
	"github.com/elfhost/elfhost/internal/config/strict"
)

// builds are what `elfhost plugin dev` made of a folder, as long as its needs
// stayed the same. The file lies in the state folder, where no tool can write:
// a module that something else put into the plugin's folder is not among them.
//
// Grants are bound to a digest, and each build has another. A person who runs
// `plugin dev` says that these builds are one plugin: what was granted to one
// of them counts for all. When the needs change the list begins anew, and with
// it the questions.
type builds struct {
	Folder    string   `json:"folder"`
	Publisher string   `json:"publisher"`
	Name      string   `json:"name"`
	Needs     string   `json:"needs"` // their hash
	Digests   []string `json:"digests"`
}

// maxBuilds bounds how many are kept: a build a minute for a long day.
const maxBuilds = 512

// buildsFile names the file about a folder. Links are resolved, so that every
// name of the folder leads to the same file.
func buildsFile(p config.Paths, folder string) (file, real string, err error) {
	if real, err = filepath.Abs(folder); err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return "", "", err
	}
	sum := sha256.Sum256([]byte(real))
	return filepath.Join(p.State, "builds", hex.EncodeToString(sum[:12])+".json"), real, nil
}

// KeepBuild notes that a person's `plugin dev` made this package in the
// folder. Sessions that have loaded the folder take it up. again reports
// whether the needs are not those of the build before: grants do not carry over.
func KeepBuild(p config.Paths, folder string, pkg sandbox.Package) (again bool, err error) {
	file, real, err := buildsFile(p, folder)
	if err != nil {
		return false, err
	}
	m := pkg.Manifest
	next := builds{Folder: real, Publisher: m.Publisher, Name: m.Name, Needs: manifest.NeedsHash(m.Needs)}
	had, err := readBuilds(file)
	if err != nil {
		return false, err
	}
	switch {
	case had.Publisher == next.Publisher && had.Name == next.Name && had.Needs == next.Needs:
		next.Digests = slices.DeleteFunc(had.Digests, func(d string) bool { return d == pkg.Digest })
	default:
		again = had.Name != ""
	}
	if over := len(next.Digests) - maxBuilds + 1; over > 0 {
		next.Digests = next.Digests[over:]
	}
	next.Digests = append(next.Digests, pkg.Digest)
	b, err := json.Marshal(next)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err != nil {
		return again, err
	}
	return again, strict.WriteFile(file, b)
}

// maxBuildsFile bounds the file, in bytes.
const maxBuildsFile = 1 << 20

// readBuilds reads the file; none is the zero value.
func readBuilds(file string) (b builds, err error) {
	text, err := readBounded(file, maxBuildsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	return b, err
}

// latest is the digest of the last build, "" when there is none.
func (b builds) latest() string {
	if len(b.Digests) == 0 {
		return ""
	}
	return b.Digests[len(b.Digests)-1]
}

// family lists the keys whose grants count for a plugin: its own, and those of
// the other builds that the same person made of the same folder.
func (a *App) family(k granted.Key) []granted.Key {
	out := []granted.Key{k}
	for _, p := range a.packs() {
		if p.folder == "" || p.key() != k {
			continue
		}
		file, _, err := buildsFile(a.Paths, p.folder)
		if err != nil {
			continue
		}
		b, err := readBuilds(file)
		if err != nil || b.Publisher != k.Publisher || b.Name != k.Name || b.Needs != k.Needs || !slices.Contains(b.Digests, k.Digest) {
			continue
		}
		for _, d := range b.Digests {
			if d != k.Digest {
				other := k
				other.Digest = d
				out = append(out, other)
			}
		}
	}
	return out
}
