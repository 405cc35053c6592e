// Package known holds what vendors publish about their models, prices and
// context windows, for models whose provider does not say it. It ages: the
// table has a date, and configuration overrides it.
package known

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/elfhost/elfhost/host/model"
)

//go:embed known.toml
var data []byte

// Table is what vendors had published on a day.
type Table struct {
	Date   string           `toml:"date"` // YYYY-MM-DD
	Models map[string]Facts `toml:"models"`
	// TextOnly are what the names of models begin with that take no images.
	TextOnly []string `toml:"text_only"`
}

// Facts are what is published of a model.
type Facts struct {
	model.Price
	Window    int64 `toml:"window"`
	MaxOutput int64 `toml:"max_output"`
}

// Load reads the table that is built in.
func Load() (Table, error) {
	var p Table
	if err := toml.Unmarshal(data, &p); err != nil {
		return Table{}, fmt.Errorf("reading the built-in table of models: %w", err)
	}
	return p, nil
}

// behind is what may follow a model's name without making it another model: a
// date, "latest" or "preview", a mode of thinking, a version at another cloud.
var behind = regexp.MustCompile(`^(-(\d{8}|\d{4}-\d\d-\d\d|\d\d-\d{4}|\d\d-\d\d|\d{3,4}|latest|preview|exp|beta|reasoning|non-reasoning))*(@.*)?$`)

// Find looks a model up by its identifier. A vendor's prefix, as OpenRouter
// has it, does not matter, nor does a date behind the name; any other ending is
// another model, whose price is not to be guessed.
func (p Table) Find(id string) (Facts, bool) {
	if i := strings.LastIndexByte(id, '/'); i >= 0 {
		id = dotted.ReplaceAllString(id[i+1:], "$1-$2")
	}
	id = strings.ToLower(id)
	best := ""
	for name := range p.Models {
		if rest, ok := strings.CutPrefix(id, name); ok && behind.MatchString(rest) && len(name) > len(best) {
			best = name
		}
	}
	f, ok := p.Models[best]
	return f, ok
}

// Blind reports whether a model is known to take no images. A vendor's prefix
// does not matter.
func (p Table) Blind(id string) bool {
	id = strings.ToLower(id[strings.LastIndexByte(id, '/')+1:])
	return slices.ContainsFunc(p.TextOnly, func(begin string) bool { return strings.HasPrefix(id, begin) })
}

// dotted is how OpenRouter writes the versions of Claude.
var dotted = regexp.MustCompile(`^(claude-[a-z]+-\d+)\.(\d+)`)
