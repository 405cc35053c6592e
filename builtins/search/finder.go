package search

import "bytes"

// finder looks for the nearest of some literals in one text, from left to
// right. It remembers where each is next, so that a text is read once for each.
type finder struct {
	lits  []needle
	text  []byte
	next  []int // absolute; -1: no more
	began bool
}

// needle is a literal with the place of its rarest byte.
type needle struct {
	lit  []byte
	rare int
}

func newNeedle(lit []byte) needle {
	n := needle{lit: lit}
	for i, c := range lit {
		if rarity(c) < rarity(lit[n.rare]) {
			n.rare = i
		}
	}
	return n
}

// rarity ranks bytes by how often they occur in source text; low is rare.
func rarity(c byte) int {
	const common = " etaoinsrlcdpum\nfg_hb.y(),\"=v:-/x0*w;1>\tk{}'T[]2SAECNRI"
	if i := bytes.IndexByte([]byte(common), c); i >= 0 {
		return len(common) - i
	}
	return 0
}

// index is bytes.Index by the rarest byte. Where that is not rare in this
// text after all, bytes.Index takes over.
func (n needle) index(text []byte) int {
	if len(n.lit) == 1 {
		return bytes.IndexByte(text, n.lit[0])
	}
	c := n.lit[n.rare]
	fails := 0
	for at := n.rare; ; {
		if at >= len(text) {
			return -1
		}
		i := bytes.IndexByte(text[at:], c)
		if i < 0 {
			return -1
		}
		at += i
		from := at - n.rare
		if from+len(n.lit) > len(text) {
			return -1
		}
		if bytes.Equal(text[from:from+len(n.lit)], n.lit) {
			return from
		}
		at++
		if fails++; fails > 8+at/128 {
			if i := bytes.Index(text[from+1:], n.lit); i >= 0 {
				return from + 1 + i
			}
			return -1
		}
	}
}

func (f *finder) reset(text []byte) {
	f.text, f.began = text, false
}

// from returns the nearest literal at or after off, or -1.
func (f *finder) from(off int) int {
	if !f.began {
		f.began = true
		f.next = f.next[:0]
		for range f.lits {
			f.next = append(f.next, -2)
		}
	}
	best := -1
	for i, at := range f.next {
		if at == -1 {
			continue
		}
		if at < off {
			at = f.lits[i].index(f.text[off:])
			if at >= 0 {
				at += off
			}
			f.next[i] = at
		}
		if at >= 0 && (best < 0 || at < best) {
			best = at
		}
	}
	return best
}
