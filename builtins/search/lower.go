package search

import (
	"bytes"
	"encoding/binary"
)

// lower puts text, with its ASCII letters in lower case, into dst and returns
// it. Eight bytes go at once: a byte is an upper-case letter when adding makes
// its top bit flip at 'A' and not yet at 'Z'+1.
func lower(dst, text []byte) []byte {
	if cap(dst) < len(text) {
		dst = make([]byte, len(text)+len(text)/4)
	}
	dst = dst[:len(text)]
	const ones = 0x0101010101010101
	i := 0
	for ; i+8 <= len(text); i += 8 {
		w := binary.LittleEndian.Uint64(text[i:])
		low := w &^ (0x80 * ones)
		upper := (low + (0x80-'A')*ones) &^ (low + (0x80-'Z'-1)*ones) &^ w & (0x80 * ones)
		binary.LittleEndian.PutUint64(dst[i:], w|upper>>2)
	}
	for ; i < len(text); i++ {
		c := text[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst[i] = c
	}
	return dst
}

// kelvin and long s fold to ASCII letters, so that text with them cannot be
// ruled out by looking for ASCII alone.
var (
	kelvin = []byte("\u212a")
	longS  = []byte("\u017f")
)

func foldsToASCII(text []byte) bool {
	return bytes.Contains(text, kelvin) || bytes.Contains(text, longS)
}
