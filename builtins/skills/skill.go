package skills

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/elfhost/elfhost/builtins/internal/frontmatter"
	"github.com/elfhost/elfhost/builtins/internal/plain"
)

// Limits of the format, in characters.
const (
	maxName        = 64
	maxDescription = 1024
)

func (k *Skill) warn(format string, args ...any) {
	if w := plain.Line(fmt.Sprintf(format, args...), 300); len(k.Warnings) < 16 {
		k.Warnings = append(k.Warnings, w)
	}
}

// read fills a skill from its file. Name is its folder's before.
func (k *Skill) read(b []byte) {
	d, err := frontmatter.Parse(b)
	if err != nil {
		k.Problem = err.Error()
		return
	}
	for _, w := range d.Warnings {
		k.warn("%s", w)
	}
	k.body, k.line = d.Body, d.Line
	if !d.Has {
		k.warn("it has no block of fields; name and description are taken from its folder and text")
	}
	k.named(d.Fields)
	k.described(d.Fields)
	k.restricted(d.Fields)
	k.License, k.Needs = k.text(d.Fields, "license", 200), k.text(d.Fields, "compatibility", 500)
	if strings.TrimSpace(d.Body) == "" {
		if k.Problem == "" && k.Description == "" {
			k.Problem = "it is empty"
		}
		k.warn("it has no instructions beside its description")
	}
	k.Flags = append(k.Flags, flags(string(b), k.Tools)...)
}

func (k *Skill) text(f frontmatter.Fields, key string, most int) string {
	s, err := f.Text(key)
	if err != nil {
		k.warn("%v", err)
	}
	return plain.Line(s, most)
}

// named takes the name of the fields. It is what people and models type, so it
// is brought into the form of the format.
func (k *Skill) named(f frontmatter.Fields) {
	folder := k.Name
	given := k.text(f, "name", 200)
	if given == "" {
		if f != nil {
			k.warn("it has no name; its folder's is used")
		}
		return
	}
	name := slug(given)
	if name == "" {
		k.warn("its name %q has no letter or digit; its folder's is used", given)
		return
	}
	k.Name = name
	switch {
	case name != given:
		k.warn("its name %q is not in the form a-z, 0-9 and single hyphens; it is called %s here", given, name)
	case name != folder:
		k.warn("its name differs from its folder's, %s", path.Base(k.Dir))
	}
}

// slug brings a name into the format's form: small letters and digits of any
// script, parted by single hyphens.
func slug(s string) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		switch {
		case n >= maxName:
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r) && n > 0:
			b.WriteRune(unicode.ToLower(r))
			n++
		case n > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
			n++
		}
	}
	return strings.Trim(b.String(), "-")
}

// described takes the description, or the text's first words for it: without
// one a model never knows when to use the skill.
func (k *Skill) described(f frontmatter.Fields) {
	k.Description = k.text(f, "description", 1<<16)
	if when := k.text(f, "when-to-use", maxDescription); when != "" && k.Description != "" {
		k.Description += " " + when
	}
	if k.Description == "" {
		k.Description = opening(k.body)
		if k.Description != "" {
			k.warn("it has no description; its first words are used")
		} else {
			k.warn("it has no description")
		}
	}
	if n := utf8.RuneCountInString(k.Description); n > maxDescription {
		k.warn("its description has %d characters, the first %d count", n, maxDescription)
		k.Description = plain.Line(k.Description, maxDescription)
	}
}

// Told is what a model is told of a skill before it reads it, as its SKILL.md
// has it: escapes of the fields are undone, and nothing is cleaned. "" is that
// there is no description, or that the file cannot be read.
func Told(file []byte) string {
	d, err := frontmatter.Parse(file)
	if err != nil {
		return ""
	}
	text, _ := d.Fields.Text("description")
	if when, _ := d.Fields.Text("when-to-use"); when != "" {
		text += " " + when
	}
	return text
}

// opening is the first paragraph of a text that is no heading or mark-up.
func opening(body string) string {
	var words []string
	fenced := false
	for line := range strings.SplitSeq(body, "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		line = strings.TrimLeft(line, "> *-")
		if line == "" || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "<") || strings.HasPrefix(line, "|") || strings.HasPrefix(line, "[!") || strings.HasPrefix(line, "![") {
			if len(words) > 0 {
				break
			}
			continue
		}
		words = append(words, line)
	}
	return plain.Line(strings.Join(words, " "), 300)
}

// restricted reads what the skill gives up, and who may start it. A word that
// is neither yes nor no makes the skill unusable: both guesses could be wrong.
func (k *Skill) restricted(f frontmatter.Fields) {
	tools, set, warnings := f.Tools("allowed-tools")
	for _, w := range warnings {
		k.warn("%s", w)
	}
	for _, t := range tools {
		k.Tools = append(k.Tools, plain.Line(t, 200))
	}
	k.Narrows = set
	manual, _, err := f.Bool("disable-model-invocation")
	if _, _, err2 := f.Bool("user-invocable"); err == nil {
		err = err2
	}
	if err != nil {
		k.Problem = plain.Line(err.Error(), 200)
	}
	k.Manual = manual
}
