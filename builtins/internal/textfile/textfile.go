// Package textfile gives one verdict on a file's bytes for every tool that
// reads text: which encoding it is in, or that it is not text and what it is
// instead. Read, Edit and Grep must never disagree about the same bytes.
package textfile

import (
	"bytes"
	"unicode/utf8"
)

// HeadSize is how much of a file Sniff wants to see. Less is fine for a
// smaller file; more is ignored.
const HeadSize = 64 << 10

// Encoding is an encoding that the tools read and write.
type Encoding int

// The encodings. Legacy and Binary are verdicts, not encodings: their text is
// refused by Read and Edit.
const (
	UTF8 Encoding = iota
	UTF16LE
	UTF16BE
	Legacy
	Binary
)

// Verdict is what Sniff found.
type Verdict struct {
	Encoding Encoding
	BOM      bool
	// Name is for people: "UTF-8", "UTF-16LE with BOM", "windows-1251", "ELF executable".
	Name string
	// MIME is set for images that a model can look at.
	MIME string
	// CRLF reports whether the head has a CR LF pair.
	CRLF bool
}

// Text reports whether the file can be read and written as text.
func (v Verdict) Text() bool { return v.Encoding <= UTF16BE }

// Wide reports whether the text has to be transcoded.
func (v Verdict) Wide() bool { return v.Encoding == UTF16LE || v.Encoding == UTF16BE }

// BOMLen is how many bytes of mark stand before the text.
func (v Verdict) BOMLen() int {
	switch {
	case !v.BOM:
		return 0
	case v.Encoding == UTF8:
		return 3
	}
	return 2
}

// Sniff looks at the first bytes of a file. whole says that they are all of it.
func Sniff(head []byte, whole bool) Verdict {
	if len(head) > HeadSize {
		head, whole = head[:HeadSize], false
	}
	v := sniff(head, whole)
	switch v.Encoding {
	case UTF8:
		v.CRLF = bytes.Contains(head, []byte("\r\n"))
	case UTF16LE:
		v.CRLF = bytes.Contains(head, []byte("\r\x00\n\x00"))
	case UTF16BE:
		v.CRLF = bytes.Contains(head, []byte("\x00\r\x00\n"))
	}
	return v
}

func sniff(head []byte, whole bool) Verdict {
	if name, mime := magic(head); name != "" {
		return Verdict{Encoding: Binary, Name: name, MIME: mime}
	}
	switch {
	case bytes.HasPrefix(head, []byte{0xEF, 0xBB, 0xBF}):
		return Verdict{Encoding: UTF8, BOM: true, Name: "UTF-8 with BOM"}
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE, 0, 0}), bytes.HasPrefix(head, []byte{0, 0, 0xFE, 0xFF}):
		return Verdict{Encoding: Legacy, Name: "UTF-32"}
	case bytes.HasPrefix(head, []byte{0xFF, 0xFE}):
		return Verdict{Encoding: UTF16LE, BOM: true, Name: "UTF-16LE with BOM"}
	case bytes.HasPrefix(head, []byte{0xFE, 0xFF}):
		return Verdict{Encoding: UTF16BE, BOM: true, Name: "UTF-16BE with BOM"}
	}
	if bytes.IndexByte(head, 0) >= 0 {
		if enc, ok := wide(head); ok {
			return Verdict{Encoding: enc, Name: map[Encoding]string{UTF16LE: "UTF-16LE", UTF16BE: "UTF-16BE"}[enc]}
		}
		return Verdict{Encoding: Binary, Name: "binary data"}
	}
	body := head
	if !whole {
		body = trimCutRune(head)
	}
	if utf8.Valid(body) {
		if controls(body) {
			return Verdict{Encoding: Binary, Name: "binary data"}
		}
		if bytes.Contains(body, []byte("\x1b$B")) || bytes.Contains(body, []byte("\x1b$@")) {
			return Verdict{Encoding: Legacy, Name: "ISO-2022-JP"}
		}
		return Verdict{Encoding: UTF8, Name: "UTF-8"}
	}
	if controls(body) {
		return Verdict{Encoding: Binary, Name: "binary data"}
	}
	if mostlyUTF8(body) {
		return Verdict{Encoding: UTF8, Name: "UTF-8 with invalid bytes"}
	}
	return Verdict{Encoding: Legacy, Name: legacyName(body)}
}

// trimCutRune drops a rune that the end of the head cut in two.
func trimCutRune(b []byte) []byte {
	for i := 1; i <= utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// controls reports whether more than one byte in twenty is a control
// character that text does not have. Escape and backspace occur in logs.
func controls(b []byte) bool {
	n := 0
	for _, c := range b {
		if c < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != '\v' && c != '\b' && c != 0x1b {
			n++
		}
	}
	return n*20 > len(b)
}

// mostlyUTF8 tells UTF-8 with damage from another charset: real multi-byte
// runes hardly ever occur by chance.
func mostlyUTF8(b []byte) bool {
	good, bad := 0, 0
	for len(b) > 0 {
		if b[0] < utf8.RuneSelf {
			b = b[1:]
			continue
		}
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			bad++
		} else {
			good++
		}
		b = b[n:]
	}
	return good > 4*bad
}
