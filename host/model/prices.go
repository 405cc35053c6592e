package model

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
