package reach

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Bubblewrap reads the whole mount table at every bind. The system's files and
// small folders in /etc are copied into the sandbox instead; others stay
// binds, for a dozen entries cost more than one.

// Limits of what is copied.
const (
	copiedEntries = 12 // of one folder
	copiedSize    = 256 << 10
)

// entry is one thing that is made anew inside: a folder, a link, or a file
// with the content that it has when a program starts.
type entry struct {
	path   string
	target string // of a link
	folder bool
}

// entries lists what a path of the system is copied as; nil when it is not.
// What not everybody may read is left out: inside, root is nobody.
func entries(p string) []entry {
	info, err := os.Stat(p)
	if err != nil {
		return nil
	}
	linked, err := os.Lstat(p)
	if err != nil || info.IsDir() && linked.Mode()&os.ModeSymlink != 0 {
		return nil
	}
	var c copies
	if !c.add(p, info) {
		return nil
	}
	return c
}

type copies []entry

func (c *copies) add(p string, info fs.FileInfo) bool {
	if len(*c) == copiedEntries {
		return false
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return mode&0o005 != 0o005 || c.addFolder(p)
	case mode&os.ModeSymlink != 0:
		target, err := os.Readlink(p)
		*c = append(*c, entry{path: p, target: target})
		return err == nil
	case !mode.IsRegular() || info.Size() > copiedSize:
		return false
	case mode&0o004 != 0:
		*c = append(*c, entry{path: p})
	}
	return true
}

func (c *copies) addFolder(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	*c = append(*c, entry{path: dir, folder: true})
	list, err := f.Readdir(copiedEntries + 1) // /etc/alternatives has hundreds
	if err != nil && !errors.Is(err, io.EOF) || len(list) > copiedEntries {
		return false
	}
	for _, info := range list {
		if !c.add(filepath.Join(dir, info.Name()), info) {
			return false
		}
	}
	return true
}

// copied are bubblewrap's arguments for entries. Files are opened and go to it
// as descriptors, the first of which is exec.Cmd's first extra file; one that
// is gone is left out.
func copied(list []entry, files []*os.File) ([]string, []*os.File) {
	var args []string
	for _, e := range list {
		switch {
		case e.folder:
			args = append(args, "--dir", e.path)
		case e.target != "":
			args = append(args, "--symlink", e.target, e.path)
		default:
			if f, err := os.Open(e.path); err == nil {
				args = append(args, "--file", strconv.Itoa(firstExtraFile+len(files)), e.path)
				files = append(files, f)
			}
		}
	}
	return args, files
}

// firstExtraFile is the descriptor of exec.Cmd's first extra file.
const firstExtraFile = 3

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
