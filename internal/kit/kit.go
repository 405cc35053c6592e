// Package kit is what `elfhost plugin new`, build, test, check and bench do for
// authors. It works on a folder with an elf.toml, anywhere, without a network.
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
	"strings"
	"text/template"

	"github.com/elfhost/elfhost"
	"github.com/elfhost/elfhost/abi"
)

//go:embed all:templates
var templates embed.FS

// Languages are those that New knows.
func Languages() []string { return []string{"go"} }

// New makes a project in dir, which must not exist or be empty. It lists the
// files that it wrote, those of the kit's sources left out.
func New(dir, lang string) ([]string, error) {
	name := strings.ToLower(filepath.Base(dir))
	if err := abi.CheckName(name); err != nil {
		return nil, err
	}
	if lang != "go" {
		return nil, fmt.Errorf("there is no template for %q; there is one for go, and docs/plugin-authors.md shows other languages", lang)
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%q is not empty", dir)
	}
	values := struct{ Name, Tool string }{name, strings.ReplaceAll(name, "-", "_")}
	var wrote []string
	root := path.Join("templates", lang)
	err := fs.WalkDir(templates, root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := fs.ReadFile(templates, p)
		if err != nil {
			return err
		}
		t, err := template.New(p).Parse(string(text))
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := t.Execute(&out, values); err != nil {
			return err
		}
		to := strings.TrimSuffix(strings.TrimPrefix(p, root+"/"), ".tmpl")
		if to == "gitignore" {
			to = ".gitignore"
		}
		wrote = append(wrote, to)
		return write(filepath.Join(dir, filepath.FromSlash(to)), out.Bytes())
	})
	if err != nil {
		return nil, err
	}
	return wrote, sources(filepath.Join(dir, "elfhost"))
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
