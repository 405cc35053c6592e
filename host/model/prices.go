package model

// Price is what a model costs, in US dollars for a million tokens of each kind.
type Price struct {
	Input      float64 `json:"input" toml:"input"`
	Output     float64 `json:"output" toml:"output"`
	CacheRead  float64 `json:"cacheRead,omitempty" toml:"cache_read"`
	CacheWrite float64 `json:"cacheWrite,omitempty" toml:"cache_write"` // zero: as Input
	// Above is from how many tokens of a prompt on Long is the price of the
	// whole request; zero: there is no other price.
	Above int64  `json:"above,omitempty" toml:"above"`
	Long  *Price `json:"long,omitempty" toml:"long"`
}

// Cost is the price of one request, in US dollars.
func (p Price) Cost(u Usage) float64 {
	if p.Long != nil && p.Above > 0 && u.Input+u.CacheRead+u.CacheWrite > p.Above {
		p = *p.Long
	}
	write := p.CacheWrite
	if write == 0 {
		write = p.Input
	}
	return (float64(u.Input)*p.Input + float64(u.Output)*p.Output +
		float64(u.CacheRead)*p.CacheRead + float64(u.CacheWrite)*write) / 1e6
}
