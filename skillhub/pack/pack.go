// Package pack is the format of packages, NAME-VERSION.elfpkg: it makes them of
// folders, and reads those that strangers made.
//
// An archive is a gzipped tar in one canonical form, so that the same files are
// always the same bytes: names in order, no times, no owners, regular files
// only. Reading is streamed and holds every other form to be an error, so two
// readers cannot see different packages in the same bytes. docs/packages.md has
// the format.
//
// A package is data and Wasm. Scripts, native programs and archives in it are
// refused by name.
package pack

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/skillhub"
)

// Files with a meaning of their own, at the top of a package.
const (
	ManifestFile    = "elf.toml"
	ModuleFile      = "plugin.wasm"
	DescribeFile    = "describe.json" // abi.Description: what elf_describe said when it was packed
	SkillFile       = "SKILL.md"
	StatementFile   = "elf.signed.json" // what the publisher signed, see skillhub/sign
	SignatureFile   = "elf.signed.json.minisig"
	maxText         = 1 << 20 // of elf.toml, describe.json and SKILL.md
	maxStatement    = 64 << 10
	maxName         = 240     // bytes of a whole name
	maxPart         = 100     // bytes of one part of it
	maxDepth        = 12      // parts
	freeOfRatio     = 4 << 20 // unpacked bytes before the ratio counts
	maxRatio        = 100     // unpacked to packed
	maxNamedInError = 8
)

// Limits of a package, unpacked.
const (
	MaxEntries = 1000
	MaxBytes   = 128 << 20 // of everything
	MaxFile    = 32 << 20  // of one file: the ABI's limit on a module
)

// ErrRefused is in the error for a package that breaks a rule of the format.
var ErrRefused = errors.New("the package is refused")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrRefused, fmt.Errorf(format, args...))
}

// ScriptsError names the scripts for which a package is refused.
type ScriptsError struct{ Names []string }

// Error names the first of them.
func (e *ScriptsError) Error() string {
	names, more := e.Names, ""
	if len(names) > maxNamedInError {
		names, more = names[:maxNamedInError], fmt.Sprintf(" and %d more", len(e.Names)-maxNamedInError)
	}
	return fmt.Sprintf("%v: code in a package is Wasm only, and these are scripts or programs: %s%s", ErrRefused, strings.Join(names, ", "), more)
}

// Unwrap makes it an ErrRefused.
func (e *ScriptsError) Unwrap() error { return ErrRefused }

// Options of packing and unpacking. The zero value is strict.
type Options struct {
	// WithoutScripts leaves scripts out rather than refuse the package. What a
	// publisher signed still covers them.
	WithoutScripts bool
	// Foreign lets elf.toml be absent, and modules then have other names: plugins
	// of other formats, which host/foreign understands.
	Foreign bool
}

// File is one file of a package.
type File struct {
	Name   string // slashes, relative
	Size   int64
	Digest skillhub.Digest
	Left   bool // a script that was left out; it counts in Contents.Digest
}

// Contents is what is in a package.
type Contents struct {
	Manifest    *abi.Manifest    // nil only where Options.Foreign allows it
	Description *abi.Description // nil without describe.json
	Files       []File           // in the order of their names
	Left        []string         // what was not packed, or not unpacked
	Statement   []byte           // StatementFile; nil: not signed
	Signature   []byte           // SignatureFile
}

// File finds a file by its name.
func (c *Contents) File(name string) (File, bool) {
	i, ok := slices.BinarySearchFunc(c.Files, name, func(f File, n string) int { return strings.Compare(f.Name, n) })
	if !ok {
		return File{}, false
	}
	return c.Files[i], true
}

// Kind says what the package brings.
func (c *Contents) Kind() skillhub.Kind {
	_, skill := c.File(SkillFile)
	_, module := c.File(ModuleFile)
	switch {
	case skill && module:
		return skillhub.Both
	case skill:
		return skillhub.Text
	}
	return skillhub.Tool
}

// Digest covers the names and bytes of all files, but for the signature and
// what it signs. It does not depend on how they were compressed.
func (c *Contents) Digest() skillhub.Digest {
	h := sha256.New()
	for _, f := range c.Files {
		if f.Name != StatementFile && f.Name != SignatureFile {
			fmt.Fprintf(h, "%s %d %s\n", f.Digest.Hex(), f.Size, f.Name)
		}
	}
	return skillhub.DigestSum(h.Sum(nil))
}

// FileName is how the archive of a package is called.
func FileName(m *abi.Manifest) string { return m.Name + "-" + m.Version + skillhub.Ext }
