package reach

import (
	"os"
	"path/filepath"
	"strconv"
)

// Bubblewrap reads the whole mount table at every bind, and showing /etc takes
// two dozen. The system's files and small folders are copied into the sandbox
// instead; others stay binds, for a dozen entries cost more than one.

// Limits of what is copied.
const (
	copiedEntries = 12 // of one folder
	copiedFiles   = 64
	copiedSize    = 256 << 10 // of one file
)

// copies collects arguments for bubblewrap and the files that they name.
type copies struct {
	entries int
	args    []string
	files   []*os.File
}

// add copies a path of the system, or leaves everything as it was and reports
// false. What not everybody may read is left out: inside, root is nobody.
func (c *copies) add(p string) bool {
	c.entries = 0
	before := *c
	info, err := os.Stat(p)
	if err != nil {
		return false
	}
	linked, err := os.Lstat(p)
	if err != nil || info.IsDir() && linked.Mode()&os.ModeSymlink != 0 || !c.entry(p, info) {
		closeFiles(c.files[len(before.files):])
		*c = before
		return false
	}
	return true
}

func (c *copies) entry(p string, info os.FileInfo) bool {
	if c.entries++; c.entries > copiedEntries {
		return false
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return mode&0o005 != 0o005 || c.folder(p)
	case mode&os.ModeSymlink != 0:
		target, err := os.Readlink(p)
		c.args = append(c.args, "--symlink", target, p)
		return err == nil
	case !mode.IsRegular() || info.Size() > copiedSize || len(c.files) == copiedFiles:
		return false
	case mode&0o004 == 0:
		return true
	}
	f, err := os.Open(p)
	if err != nil {
		return false
	}
	c.files = append(c.files, f)
	c.args = append(c.args, "--file", strconv.Itoa(firstExtraFile+len(c.files)-1), p)
	return true
}

func (c *copies) folder(dir string) bool {
	list, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	c.args = append(c.args, "--dir", dir)
	for _, e := range list {
		info, err := e.Info()
		if err != nil || !c.entry(filepath.Join(dir, e.Name()), info) {
			return false
		}
	}
	return true
}

// firstExtraFile is the descriptor of exec.Cmd's first extra file.
const firstExtraFile = 3

func closeFiles(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
