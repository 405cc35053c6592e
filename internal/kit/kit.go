// Package kit is what `elfhost plugin new`, build, dev, test, check
// and bench do for authors. It works on a folder with an elf.toml, anywhere, without a network.
package kit

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/elfhost/elfhost"
	"github.com/elfhost/elfhost/abi"
)

//go:embed all:templates
var templates embed.FS

// Examples are what New can begin with: a greeting, or a page that is fetched
// and kept in a file. Each is the same in every language.
func Examples() []string { return []string{"hello", "save"} }

// New makes a project in dir, which must not exist or be empty, from an
// example in a language. It lists the files that it wrote, those of the Go
// kit's sources left out.
func New(dir, lang, example string) ([]string, error) {
	name := strings.ToLower(filepath.Base(dir))
	if err := abi.CheckName(name); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(languages, func(l Language) bool { return l.Name == lang })
	if i < 0 {
		return nil, fmt.Errorf("there is no template for %q; there are some for %s, and docs/plugin-authors.md shows other languages", lang, strings.Join(Languages(), ", "))
	}
	if !slices.Contains(Examples(), example) {
		return nil, fmt.Errorf("there is no example %q; there are %s", example, strings.Join(Examples(), ", "))
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%q is not empty", dir)
	}
	v := values{Name: name, Tool: strings.ReplaceAll(name, "-", "_"), Lang: lang, Declare: languages[i].tools}
	var wrote []string
	for _, part := range []string{"all/" + example, lang + "/common", lang + "/" + example} {
		files, err := v.lay(path.Join("templates", part), dir)
		if err != nil {
			return nil, err
		}
		wrote = append(wrote, files...)
	}
	slices.Sort(wrote)
	if lang != "go" {
		return wrote, nil
	}
	return wrote, sources(filepath.Join(dir, "elfhost"))
}

// values are what templates are filled with.
type values struct {
	Name, Tool, Lang string
	Declare          bool // the tools in elf.toml
}

// lay writes a folder of templates. Files that end in .tmpl are filled.
func (v values) lay(root, dir string) (wrote []string, err error) {
	err = fs.WalkDir(templates, root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(templates, p)
		if err != nil {
			return err
		}
		to := strings.TrimPrefix(p, root+"/")
		if rest, ok := strings.CutSuffix(to, ".tmpl"); ok {
			to = rest
			t, err := template.New(p).Parse(string(text))
			if err != nil {
				return err
			}
			var out bytes.Buffer
			if err := t.Execute(&out, v); err != nil {
				return err
			}
			text = out.Bytes()
		}
		if to == "gitignore" {
			to = ".gitignore"
		}
		wrote = append(wrote, to)
		return write(filepath.Join(dir, filepath.FromSlash(to)), text)
	})
	return wrote, err
}

// sources lays the kit into a folder that is a module of its own.
func sources(dir string) error {
	err := fs.WalkDir(elfhost.Kit, ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(p, "_test.go") {
			return err
		}
		b, err := elfhost.Kit.ReadFile(p)
		if err != nil {
			return err
		}
		return write(filepath.Join(dir, filepath.FromSlash(p)), b)
	})
	if err != nil {
		return err
	}
	return write(filepath.Join(dir, "go.mod"), []byte("module github.com/elfhost/elfhost\n\ngo 1.24\n"))
}

func write(file string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}
