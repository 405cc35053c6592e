package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/internal/config"
)

// Limits of what one folder may ask a person to look at.
const (
	maxItems = 500
	maxBytes = 8 << 20
)

// sources are the files and folders of a project that can start programs, or
// widen what an agent does: MCP servers, slash commands (they may hold shell
// lines), agent definitions (they may bring MCP servers). Skills are text, and
// a project's policy can only narrow, so they are not among them.
var sources = []string{
	config.ProjectDir + "/config.toml",
	config.ProjectDir + "/commands",
	config.ProjectDir + "/agents",
	".mcp.json",
}

// Look reads what there is to trust in a folder. It follows links, as those
// who use the files do, and opens regular files only.
func Look(dir string) (Survey, error) {
	s := Survey{Dir: canonical(dir)}
	w := &survey{root: s.Dir, left: maxBytes, files: map[string][]byte{}}
	for _, name := range sources {
		if err := w.visit(name, 0); err != nil {
			return Survey{Dir: s.Dir}, fmt.Errorf("looking for what %q would run: %w", s.Dir, err)
		}
	}
	s.Items, s.files = w.items, w.files
	slices.SortFunc(s.Items, func(a, b Item) int { return strings.Compare(a.Path, b.Path) })
	sum := sha256.New()
	for _, i := range s.Items {
		fmt.Fprintf(sum, "%d:%s=%s\n", len(i.Path), i.Path, i.Digest)
	}
	s.Digest = "sha256:" + hex.EncodeToString(sum.Sum(nil))
	return s, nil
}

type survey struct {
	root  string
	items []Item
	files map[string][]byte
	left  int64
}

func (w *survey) visit(name string, depth int) error {
	full := filepath.Join(w.root, filepath.FromSlash(name))
	st, err := os.Stat(full)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(full); err == nil {
			return w.add(name, "a link to nothing")
		}
		return nil
	case err != nil:
		return err
	case st.IsDir():
		return w.folder(name, full, depth)
	case !st.Mode().IsRegular():
		return fmt.Errorf("%q is not a regular file", name)
	}
	f, err := os.Open(full)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, w.left+1))
	if err != nil {
		return err
	}
	if w.left -= int64(len(b)); w.left < 0 {
		return fmt.Errorf("there is over %d MiB to trust", maxBytes>>20)
	}
	w.files[name] = b
	sum := sha256.Sum256(b)
	return w.add(name, "sha256:"+hex.EncodeToString(sum[:]))
}

func (w *survey) folder(name, full string, depth int) error {
	if depth > 8 { // links may form a circle
		return fmt.Errorf("%q is nested too deeply", name)
	}
	entries, err := os.ReadDir(full)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := w.visit(name+"/"+e.Name(), depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *survey) add(name, digest string) error {
	if len(w.items) >= maxItems {
		return fmt.Errorf("there are over %d files to trust", maxItems)
	}
	w.items = append(w.items, Item{name, digest})
	return nil
}
