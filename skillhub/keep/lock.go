package keep

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/sign"
)

// LockName is the name of the file that says what is installed.
const LockName = "elfhost.lock"

// maxLock bounds the file, in bytes; a thousand packages take half of it.
const maxLock = 4 << 20

// lockVersion is the version of the file's form.
const lockVersion = 1

// kept is how many earlier versions can be gone back to.
const kept = 3

// ErrLock is in the error for a lock file that is not as elfhost wrote it.
var ErrLock = errors.New("the lock file cannot be used")

// Pin is one version of a package, down to the byte, and what a person granted
// to exactly that.
type Pin struct {
	Version        string          `toml:"version"`
	Source         string          `toml:"source"`        // where to fetch it again: a skillhub.Ref
	Hub            string          `toml:"hub,omitempty"` // the address of the hub, repository or folder, for policies
	Digest         skillhub.Digest `toml:"digest"`        // of the archive
	Size           int64           `toml:"size"`
	Publisher      string          `toml:"publisher,omitempty"`
	Signer         string          `toml:"signer,omitempty"` // public key; "" is not signed
	Module         skillhub.Digest `toml:"module,omitempty"` // of the wasm; "" is none
	Needs          string          `toml:"needs"`            // manifest.NeedsHash
	Tools          skillhub.Digest `toml:"tools,omitempty"`  // skillhub.ToolsDigest
	Skill          skillhub.Digest `toml:"skill,omitempty"`  // of SKILL.md; "" is none
	Grants         []string        `toml:"grants,omitempty"` // "net.http https://a.test GET"
	WithoutScripts bool            `toml:"without_scripts,omitempty"`
	Foreign        bool            `toml:"foreign,omitempty"` // a plugin of another format
}

// Package is one installed package.
type Package struct {
	Name      string `toml:"name"`
	Requested string `toml:"requested,omitempty"` // what a person asked for: updates look there
	Pin
	Disabled string `toml:"disabled,omitempty"` // why; "" is enabled
	Hold     string `toml:"pinned,omitempty"`   // a person's reason not to update it
	Update   *Pin   `toml:"update,omitempty"`   // a version that waits for a person
	Previous []Pin  `toml:"previous,omitempty"` // the last first
}

// Lock is the content of elfhost.lock.
type Lock struct {
	Packages   []Package // in the order of their names
	Publishers sign.Pins
}

// Find finds a package by its name.
func (l *Lock) Find(name string) (*Package, bool) {
	i, ok := l.search(name)
	if !ok {
		return nil, false
	}
	return &l.Packages[i], true
}

func (l *Lock) search(name string) (int, bool) {
	return slices.BinarySearchFunc(l.Packages, name, func(p Package, n string) int { return strings.Compare(p.Name, n) })
}

// Put adds a version of a package, or puts it in the place of the one that is
// there, which becomes the first that can be gone back to.
func (l *Lock) Put(name string, pin Pin) *Package {
	i, ok := l.search(name)
	if !ok {
		l.Packages = slices.Insert(l.Packages, i, Package{Name: name, Pin: pin})
		return &l.Packages[i]
	}
	p := &l.Packages[i]
	if p.Pin.Digest != pin.Digest {
		p.Previous = slices.DeleteFunc(p.Previous, func(o Pin) bool { return o.Digest == pin.Digest })
		p.Previous = append([]Pin{p.Pin}, p.Previous...)
		p.Previous = p.Previous[:min(len(p.Previous), kept)]
	}
	p.Pin = pin
	if p.Update != nil && p.Update.Digest == pin.Digest {
		p.Update = nil
	}
	return p
}

// Remove takes a package out.
func (l *Lock) Remove(name string) bool {
	i, ok := l.search(name)
	if ok {
		l.Packages = slices.Delete(l.Packages, i, i+1)
	}
	return ok
}

// pins visits every version that the file names.
func (l *Lock) pins(visit func(Pin)) {
	for _, p := range l.Packages {
		visit(p.Pin)
		if p.Update != nil {
			visit(*p.Update)
		}
		for _, o := range p.Previous {
			visit(o)
		}
	}
}

// lockFile is the file. Its digest is that of the file without that line, so
// that no byte of it changes unseen.
type lockFile struct {
	Lock       int             `toml:"lock"`
	Digest     skillhub.Digest `toml:"digest"`
	Packages   []Package       `toml:"package,omitempty"`
	Publishers []publisher     `toml:"publisher,omitempty"`
}

type publisher struct {
	Name string `toml:"name"`
	Key  string `toml:"key"`
}

const lockHead = "# Written by elfhost: what is installed, to the byte, and what was granted to it.\n" +
	"# `elfhost plugin sync` makes a machine match it. It is not for editing by hand.\n\n"

// zeroDigest stands in the digest's place while the digest is worked out.
const zeroDigest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

// Encode writes the one form of the file.
func (l *Lock) Encode() ([]byte, error) {
	f := lockFile{Lock: lockVersion, Digest: zeroDigest, Packages: l.Packages}
	for name, key := range l.Publishers {
		f.Publishers = append(f.Publishers, publisher{name, key})
	}
	slices.SortFunc(f.Publishers, func(a, b publisher) int { return strings.Compare(a.Name, b.Name) })
	var b bytes.Buffer
	b.WriteString(lockHead)
	if err := toml.NewEncoder(&b).SetIndentTables(false).Encode(f); err != nil {
		return nil, fmt.Errorf("writing %s: %w", LockName, err)
	}
	if b.Len() > maxLock {
		return nil, fmt.Errorf("writing %s: it would be over %d bytes", LockName, maxLock)
	}
	sum := skillhub.DigestOf(b.Bytes())
	return bytes.Replace(b.Bytes(), []byte(zeroDigest), []byte(sum), 1), nil
}

// ParseLock reads the file, and refuses one that is not byte for byte as
// Encode wrote it. The error is an ErrLock.
func ParseLock(b []byte) (*Lock, error) {
	fail := func(format string, args ...any) (*Lock, error) {
		return nil, fmt.Errorf("%w: %w", ErrLock, fmt.Errorf(format, args...))
	}
	if len(b) > maxLock {
		return fail("it is over %d bytes", maxLock)
	}
	l, err := decodeLock(b)
	if err != nil {
		return nil, err
	}
	if err := l.check(); err != nil {
		return fail("%w", err)
	}
	again, err := l.Encode()
	if err != nil {
		return fail("%w", err)
	}
	if !bytes.Equal(again, b) {
		return fail("it was changed after elfhost wrote it: restore it from a copy, or from version control")
	}
	return l, nil
}

// decodeLock reads a lock file that was checked before.
func decodeLock(b []byte) (*Lock, error) {
	fail := func(format string, args ...any) (*Lock, error) {
		return nil, fmt.Errorf("%w: %w", ErrLock, fmt.Errorf(format, args...))
	}
	var f lockFile
	d := toml.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		var de *toml.DecodeError
		if errors.As(err, &de) {
			line, _ := de.Position()
			return fail("line %d: %w", line, err)
		}
		return fail("%w", err)
	}
	if f.Lock != lockVersion {
		return fail("it is of version %d; this elfhost knows %d", f.Lock, lockVersion)
	}
	l := &Lock{Packages: f.Packages, Publishers: sign.Pins{}}
	for _, p := range f.Publishers {
		l.Publishers[p.Name] = p.Key
	}
	return l, nil
}

// check holds what paths and rights are made of to its form.
func (l *Lock) check() (err error) {
	last := ""
	for i, p := range l.Packages {
		if err := abi.CheckName(p.Name); err != nil {
			return err
		}
		if i > 0 && p.Name <= last {
			return fmt.Errorf("package %q is there twice, or out of order", p.Name)
		}
		last = p.Name
	}
	l.pins(func(p Pin) {
		if err != nil {
			return
		}
		if !p.Digest.Valid() || p.Module != "" && !p.Module.Valid() || p.Tools != "" && !p.Tools.Valid() || p.Skill != "" && !p.Skill.Valid() {
			err = fmt.Errorf("version %s has a digest that is none", p.Version)
		} else if _, e := skillhub.ParseRef(p.Source); e != nil {
			err = fmt.Errorf("the source of version %s: %w", p.Version, e)
		} else {
			err = skillhub.CheckVersion(p.Version)
		}
	})
	return err
}

// ReadLock reads a lock file; one that is not there is empty.
func ReadLock(file string) (*Lock, error) {
	l, _, err := readLock(file)
	return l, err
}

func readLock(file string) (*Lock, skillhub.Digest, error) {
	b, err := readFile(file, maxLock)
	if errors.Is(err, fs.ErrNotExist) {
		return &Lock{Publishers: sign.Pins{}}, skillhub.DigestOf(nil), nil
	}
	if err != nil {
		return nil, "", err
	}
	l, err := ParseLock(b)
	if err != nil {
		return nil, "", fmt.Errorf("%q: %w", file, err)
	}
	return l, skillhub.DigestOf(b), nil
}

// readFile reads a regular file of at most that many bytes.
func readFile(name string, most int64) ([]byte, error) {
	st, err := os.Stat(name) // before the open: a FIFO would wait
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is not a regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%q is over %d bytes", name, most)
	}
	return b, err
}
