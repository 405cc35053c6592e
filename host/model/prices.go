package model

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Price is what a model costs, in US dollars for a million tokens of each kind.
type Price struct {
	Input      float64 `json:"input" toml:"input"`
	Output     float64 `json:"output" toml:"output"`
	CacheRead  float64 `json:"cacheRead,omitempty" toml:"cache_read"`
	CacheWrite float64 `json:"cacheWrite,omitempty" toml:"cache_write"` // zero: as Input
}

// Cost is the price of what was used, in US dollars.
func (p Price) Cost(u Usage) float64 {
	write := p.CacheWrite
	if write == 0 {
		write = p.Input
	}
	return (float64(u.Input)*p.Input + float64(u.Output)*p.Output +
		float64(u.CacheRead)*p.CacheRead + float64(u.CacheWrite)*write) / 1e6
}

//go:embed known.toml
var known []byte

// Published is the table of what vendors publish, for models whose provider
// does not say it. It ages: Date tells how far it can be trusted.
type Published struct {
	Date   string           `toml:"date"` // YYYY-MM-DD
	Models map[string]Facts `toml:"models"`
}

// Facts are what is published of a model.
type Facts struct {
	Price
	Window    int64 `toml:"window"`
	MaxOutput int64 `toml:"max_output"`
}

// Known reads the table that is built in.
func Known() (Published, error) {
	var p Published
	if err := toml.Unmarshal(known, &p); err != nil {
		return Published{}, fmt.Errorf("reading the built-in table of models: %w", err)
	}
	return p, nil
}

// Find looks a model up by its identifier. A vendor's prefix, as OpenRouter
// has it, does not matter, nor does a date behind the name.
func (p Published) Find(id string) (Facts, bool) {
	if i := strings.LastIndexByte(id, '/'); i >= 0 {
		id = id[i+1:]
	}
	id = strings.ToLower(id)
	best := ""
	for name := range p.Models {
		rest, ok := strings.CutPrefix(id, name)
		whole := rest == "" || strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "@") || strings.HasPrefix(rest, ":")
		if ok && whole && len(name) > len(best) {
			best = name
		}
	}
	f, ok := p.Models[best]
	return f, ok
}
