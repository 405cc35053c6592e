package pack

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// Folder packs a folder. dir should not follow links, as os.Root.FS does not;
// a link or anything else that is no regular file is an error. Hidden files,
// a module's sources, and dependencies are left out and named in
// Contents.Left.
func Folder(ctx context.Context, w io.Writer, dir fs.FS, o Options) (*Contents, error) {
	entries, left, err := list(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	c, err := Write(ctx, w, entries, o)
	if err != nil {
		return nil, err
	}
	c.Left = append(left, c.Left...)
	return c, nil
}

// maxListed bounds what is looked at in a folder that is no package.
const maxListed = 4 * MaxEntries

func list(ctx context.Context, dir fs.FS, o Options) (entries []Entry, left []string, err error) {
	_, err = fs.Stat(dir, ModuleFile)
	l := lister{module: err == nil || o.Foreign, o: o}
	_, err = fs.Stat(dir, SkillFile)
	l.skill = err == nil
	seen := 0
	err = fs.WalkDir(dir, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if name == "." {
			return nil
		}
		if seen++; seen > maxListed {
			return refuse("the folder has more than %d entries", maxListed)
		}
		if !l.takes(name, e.IsDir()) {
			if e.IsDir() {
				left = append(left, name+"/")
				return fs.SkipDir
			}
			left = append(left, name)
			return nil
		}
		if e.IsDir() {
			return nil
		}
		if !e.Type().IsRegular() {
			return refuse("%q is %s; only regular files are allowed", name, kindOf(e.Type()))
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		entries = append(entries, Entry{Name: name, Size: info.Size(), Open: func() (io.ReadCloser, error) {
			f, err := dir.Open(name)
			if err != nil {
				return nil, err
			}
			if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
				f.Close()
				return nil, fmt.Errorf("%q is not a regular file any more", name)
			}
			return f, nil
		}})
		return nil
	})
	return entries, left, err
}

func kindOf(t fs.FileMode) string {
	switch {
	case t&fs.ModeSymlink != 0:
		return "a link"
	case t&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case t&fs.ModeDevice != 0:
		return "a device"
	case t&fs.ModeSocket != 0:
		return "a socket"
	}
	return "no file"
}

// lister says what of a folder belongs into a package.
type lister struct {
	module, skill bool
	o             Options
}

// notPacked are folders that tools fill.
var notPacked = set("node_modules target vendor testdata __pycache__")

// papers are files that explain a package, whatever their ending.
var papers = set("readme license licence copying notice changelog authors security")

func (l lister) takes(name string, isDir bool) bool {
	base := path.Base(name)
	switch {
	case strings.HasPrefix(base, "."):
		return false
	case isDir:
		// Without a skill, nothing below the top belongs to a module.
		return l.skill && !notPacked[base]
	case strings.Contains(name, "/"):
		return true
	}
	switch base {
	case ManifestFile, ModuleFile, DescribeFile, SkillFile, StatementFile, SignatureFile:
		return true
	}
	stem, _, _ := strings.Cut(strings.ToLower(base), ".")
	if papers[stem] {
		return true
	}
	ext := strings.ToLower(path.Ext(base))
	if l.o.Foreign && (ext == ".wasm" || ext == ".json" || ext == ".toml") {
		return true
	}
	if strings.EqualFold(base, SkillFile) || !l.module {
		return true // a skill's own files; finish complains about the name
	}
	return l.skill && (ext == ".md" || ext == ".txt")
}
