package textfile

import "bytes"

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
