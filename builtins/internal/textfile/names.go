package textfile

import (
	"bytes"
	"regexp"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// magic names a file by its first bytes. Only the four image formats that
// models accept have a MIME type.
func magic(b []byte) (name, mime string) {
	has := func(s string) bool { return bytes.HasPrefix(b, []byte(s)) }
	switch {
	case has("\x89PNG\r\n\x1a\n"):
		return "PNG image", "image/png"
	case has("\xff\xd8\xff"):
		return "JPEG image", "image/jpeg"
	case has("GIF87a"), has("GIF89a"):
		return "GIF image", "image/gif"
	case has("RIFF") && len(b) >= 12 && string(b[8:12]) == "WEBP":
		return "WebP image", "image/webp"
	}
	for _, m := range magics {
		if has(m.prefix) {
			return m.name, ""
		}
	}
	switch {
	case has("BZh") && len(b) >= 10 && string(b[4:10]) == "1AY&SY":
		return "bzip2 archive", ""
	case len(b) > 262 && string(b[257:262]) == "ustar":
		return "tar archive", ""
	case len(b) >= 12 && string(b[4:8]) == "ftyp":
		return "MP4 or HEIF media", ""
	}
	return "", ""
}

var magics = [...]struct{ prefix, name string }{
	{"%PDF-", "PDF document"},
	{"PK\x03\x04", "ZIP archive or Office document"},
	{"PK\x05\x06", "empty ZIP archive"},
	{"\x7fELF", "ELF executable"},
	{"\x00asm", "WebAssembly module"},
	{"\x1f\x8b", "gzip archive"},
	{"\xfd7zXZ\x00", "xz archive"},
	{"\x28\xb5\x2f\xfd", "zstd archive"},
	{"7z\xbc\xaf\x27\x1c", "7-Zip archive"},
	{"Rar!\x1a\x07", "RAR archive"},
	{"SQLite format 3\x00", "SQLite database"},
	{"\xfe\xed\xfa\xcf", "Mach-O executable"},
	{"\xcf\xfa\xed\xfe", "Mach-O executable"},
	{"\xca\xfe\xba\xbe", "Java class or Mach-O executable"},
	{"MZ\x90\x00", "Windows executable"},
	{"OggS\x00", "Ogg media"},
	{"fLaC\x00", "FLAC audio"},
	{"ID3\x03\x00", "MP3 audio"},
	{"ID3\x04\x00", "MP3 audio"},
	{"\x00\x00\x01\x00", "ICO image"},
	{"wOFF", "WOFF font"},
	{"wOF2", "WOFF2 font"},
	{"\x00\x01\x00\x00\x00", "TrueType font"},
	{"!<arch>\n", "ar archive"},
	{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Office document"},
}

// declared finds a charset that the text itself names: HTML, XML, CSS, Python, Vim.
var declared = regexp.MustCompile(`(?i)(?:charset|encoding|coding)\s*[=:]\s*["']?([a-z0-9][a-z0-9_-]{2,30})`)

// legacyName guesses the charset of text that is not Unicode. A wrong guess
// costs a wrong name in a refusal, nothing else.
func legacyName(b []byte) string {
	if m := declared.FindSubmatch(b[:min(len(b), 2048)]); m != nil && !strings.HasPrefix(strings.ToLower(string(m[1])), "utf") {
		return strings.ToLower(string(m[1]))
	}
	best, name := 0, "ISO-8859-1 or windows-1252"
	if !clustered(b) {
		return name
	}
	for _, c := range candidates() {
		if s := plausible(b, c.enc, c.letters); s > best {
			best, name = s, c.name
		}
	}
	return name
}

// clustered reports whether bytes outside ASCII mostly stand side by side, as
// they do in every script but Latin.
func clustered(b []byte) bool {
	high, beside := 0, 0
	for i, c := range b {
		if c >= 0x80 {
			high++
			if i > 0 && b[i-1] >= 0x80 || i+1 < len(b) && b[i+1] >= 0x80 {
				beside++
			}
		}
	}
	return beside*4 >= high*3
}

type candidate struct {
	name    string
	enc     encoding.Encoding
	letters string // frequent letters of the languages written in it
}

const (
	russian = "оеаинтсрвлкмдпуяОЕАИНТСРВЛКМДПУЯ"
	kanji   = "のにはをたがでてとしれさるいすなも。、日本人一大"
	hanzi   = "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会。，"
	hanziT  = "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會。，"
	hangul  = "이는다을의에가고를한하은지사자로어"
)

func candidates() []candidate {
	return []candidate{
		{"windows-1251", charmap.Windows1251, russian},
		{"KOI8-R", charmap.KOI8R, russian},
		{"Shift_JIS", japanese.ShiftJIS, kanji},
		{"EUC-JP", japanese.EUCJP, kanji},
		{"GBK", simplifiedchinese.GBK, hanzi},
		{"Big5", traditionalchinese.Big5, hanziT},
		{"EUC-KR", korean.EUCKR, hangul},
	}
}

// plausible counts frequent letters in the decoded text; it is zero unless
// they are at least a fifth of what is not ASCII and nothing fails to decode.
func plausible(b []byte, enc encoding.Encoding, letters string) int {
	if len(b) > 4096 {
		b = b[:4096]
	}
	text, err := enc.NewDecoder().Bytes(b)
	if err != nil {
		return 0
	}
	hits, other, bad := 0, 0, 0
	for _, r := range string(text) {
		switch {
		case r < 0x80:
		case r == '\uFFFD':
			bad++
		case strings.ContainsRune(letters, r):
			hits++
		default:
			other++
		}
	}
	if bad > 1 || hits*4 < other {
		return 0
	}
	return hits
}
