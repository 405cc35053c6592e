package pack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/internal/config/manifest"
	"github.com/elfhost/elfhost/skillhub"
)

// builder gathers what a package holds, for packing and for unpacking, so that
// both have the same rules.
type builder struct {
	o       Options
	c       Contents
	names   names
	total   int64
	scripts []string
	modules []string // beside plugin.wasm; allowed in a package without elf.toml
	kept    map[string]*bytes.Buffer
}

// begin checks the next file. left says that it is a script that is not to be
// written anywhere.
func (b *builder) begin(name string, size int64, r io.Reader) (body io.Reader, left bool, err error) {
	if err := b.names.add(name); err != nil {
		return nil, false, refuse("%w", err)
	}
	most := int64(MaxFile)
	switch name {
	case ManifestFile, DescribeFile, SkillFile:
		most = maxText
	case StatementFile, SignatureFile:
		most = maxStatement
	}
	if size < 0 || size > most {
		return nil, false, refuse("%q has %d bytes; the limit is %d", name, size, most)
	}
	if b.total += size; b.total > MaxBytes {
		return nil, false, refuse("its files are over %d bytes together", int64(MaxBytes))
	}
	if len(b.c.Files) >= MaxEntries {
		return nil, false, refuse("it has more than %d files", MaxEntries)
	}
	b.c.Files = append(b.c.Files, File{Name: name, Size: size})
	head := make([]byte, min(size, sniff))
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, false, fmt.Errorf("reading %q: %w", name, err)
	}
	what := code(name, head)
	if what == "module" && b.o.Foreign && !strings.Contains(name, "/") {
		b.modules = append(b.modules, fmt.Sprintf("%q (module)", name))
		what = ""
	}
	if what != "" {
		b.scripts = append(b.scripts, fmt.Sprintf("%q (%s)", name, what))
		left = true
	}
	return io.MultiReader(bytes.NewReader(head), r), left, nil
}

// end completes the file that began last.
func (b *builder) end(d skillhub.Digest) { b.c.Files[len(b.c.Files)-1].Digest = d }

// keep gathers the few files that are read here.
func (b *builder) keep(name string) io.Writer {
	switch name {
	case ManifestFile, DescribeFile, StatementFile, SignatureFile, SkillFile:
		if b.kept == nil {
			b.kept = map[string]*bytes.Buffer{}
		}
		b.kept[name] = &bytes.Buffer{}
		return b.kept[name]
	}
	return io.Discard
}

func (b *builder) text(name string) []byte {
	if k := b.kept[name]; k != nil {
		return k.Bytes()
	}
	return nil
}

// finish checks the package as a whole.
func (b *builder) finish() (*Contents, error) {
	if b.text(ManifestFile) != nil { // then it is no foreign package
		b.o.Foreign = false
		if b.scripts = append(b.scripts, b.modules...); len(b.modules) > 0 {
			return nil, &ScriptsError{b.scripts} // they were written
		}
	}
	if len(b.scripts) > 0 && !b.o.WithoutScripts {
		return nil, &ScriptsError{b.scripts}
	}
	c := &b.c
	c.Left = append(c.Left, b.scripts...)
	c.Statement, c.Signature = b.text(StatementFile), b.text(SignatureFile)
	if (c.Statement == nil) != (c.Signature == nil) {
		return nil, refuse("%s and %s belong together, and one is missing", StatementFile, SignatureFile)
	}
	if err := b.manifest(); err != nil {
		return nil, err
	}
	if d := b.text(DescribeFile); d != nil {
		c.Description = &abi.Description{}
		if err := json.Unmarshal(d, c.Description); err != nil {
			return nil, refuse("%s: %w", DescribeFile, err)
		}
	}
	_, module := c.File(ModuleFile)
	_, skill := c.File(SkillFile)
	switch {
	case !module && !skill && !b.o.Foreign:
		return nil, refuse("it has neither %s nor %s", ModuleFile, SkillFile)
	case !module && c.Description != nil && !b.o.Foreign:
		return nil, refuse("it has %s and no %s", DescribeFile, ModuleFile)
	case !utf8.Valid(b.text(SkillFile)):
		return nil, refuse("%s is not UTF-8", SkillFile)
	}
	for _, f := range c.Files { // a pair such as skill.md and SKILL.md is refused with the names
		if f.Name != SkillFile && strings.EqualFold(f.Name, SkillFile) {
			return nil, refuse("the skill's file is called %s, not %q", SkillFile, f.Name)
		}
	}
	return c, nil
}

func (b *builder) manifest() error {
	text := b.text(ManifestFile)
	if text == nil {
		if b.o.Foreign {
			return nil
		}
		return refuse("it has no %s", ManifestFile)
	}
	m, err := manifest.Read(text, ManifestFile)
	if err != nil {
		return refuse("%w", err)
	}
	if err := skillhub.CheckVersion(m.Version); err != nil {
		return refuse("%s: %w", ManifestFile, err)
	}
	b.c.Manifest = m
	if _, module := b.c.File(ModuleFile); !module && len(m.Needs) > 0 && !b.o.Foreign {
		return refuse("%s asks for %s, but there is no module that could use it", ManifestFile, m.Needs[0].Cap)
	}
	return nil
}
