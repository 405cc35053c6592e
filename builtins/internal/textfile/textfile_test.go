package textfile

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

func TestSniff(t *testing.T) {
	wide := func(e Encoding, s string) string { return string(Encode([]byte(s), Verdict{Encoding: e})) }
	for _, c := range []struct{ in, want string }{
		{"", "UTF-8"}, {"plain\n", "UTF-8"}, {"\x1b[31mred\x1b[0m log\n", "UTF-8"}, {"日本語\n", "UTF-8"},
		{"\ufeffx", "UTF-8 with BOM"}, {"\xff\xfeh\x00", "UTF-16LE with BOM"}, {"\xfe\xff\x00h", "UTF-16BE with BOM"},
		{"\xff\xfe\x00\x00h\x00\x00\x00", "UTF-32"},
		{wide(UTF16LE, "Hello, world\r\n"), "UTF-16LE"}, {wide(UTF16BE, "Hello, world\r\n"), "UTF-16BE"},
		{wide(UTF16LE, "混合 Latin text, mostly, with 一二三\n"), "UTF-16LE"},
		{"\x00\x01\x00\x02binary\x00", "binary data"}, {"a\x00b\x00\x00c\x00d", "binary data"}, {"\x01\x02\x03\x04\x05", "binary data"},
		{"naïve ünï çafé ÿes \xff", "UTF-8 with invalid bytes"}, {"caf\xe9 hi\n", latinCharset},
		{"\x1b$B$3$l\x1b(B", "ISO-2022-JP"}, {"<meta charset=\"big5\">\xa4\xa4\xa4\xe5", "big5"},
		{"\xd1\xee\xe7\xe4\xe0\xed\xee", unknownCharset}, {"\xcf\xf0\xee\xe2\xe5\xf0\xea\xe0 \xf1\xe2\xff\xe7\xe8 \xf1 \xf1\xe5\xf0\xe2\xe5\xf0\xee\xec", "windows-1251"}, {"%PDF-1.4", "PDF document"}, {"BZh is a word", "UTF-8"},
	} {
		if got := Sniff([]byte(c.in), true).Name; got != c.want {
			t.Errorf("Sniff(%q) = %s, want %s", c.in, got, c.want)
		}
	}
	cut := strings.Repeat("é", HeadSize) // the head ends inside a rune
	if v := Sniff([]byte("a" + cut)[:HeadSize], false); v.Encoding != UTF8 || v.Name != "UTF-8" {
		t.Errorf("a cut rune gives %+v", v)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("\xff\xfeh\x00\x3d\xd8\x00\xde"))
	f.Add([]byte("\x00h\x00i\xd8\x3d\xde\x00"))
	f.Add([]byte("\xef\xbb\xbfabc\r\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		v := Sniff(raw, true)
		if !v.Text() {
			return
		}
		text, err := Decode(raw, v)
		stream, serr := io.ReadAll(NewReader(iotest.OneByteReader(bytes.NewReader(raw)), v))
		if serr != nil {
			t.Fatal(serr)
		}
		if err != nil {
			return
		}
		if back := Encode(text, v); !bytes.Equal(back, raw) {
			t.Fatalf("%q comes back as %q", raw, back)
		}
		if !bytes.Equal(stream, text) {
			t.Fatalf("streamed %q, whole %q", stream, text)
		}
		if v.Wide() && !utf8.Valid(text) {
			t.Fatalf("%q decodes to %q", raw, text)
		}
	})
}

// Two ASCII letters side by side are a Chinese character in UTF-16: a zero byte
// among letters does not make them one.
func TestLettersAroundAZeroByteAreNotUTF16(t *testing.T) {
	for _, s := range []string{"needle\x00bin", "needles\x00bin", "key\x00value\x00name\x00text", "abcdefgh\x00\n", "int main\x00printf", "a b\x00c", "ab\x00\n"} {
		if v := Sniff([]byte(s), true); v.Encoding != Binary {
			t.Errorf("%q is taken for %s", s, v.Name)
		}
	}
	for s, want := range map[string]Encoding{
		"h\x00i\x00\x2d\x4e\n\x00":                     UTF16LE, // hi中
		"\x4e\x2d\x65\x87\x00\n":                       UTF16BE, // 中文
		"\x00a\x00 \x4e\x2d\x00 \x00b\x00\n":           UTF16BE,
		"\x2d\x4e\x87\x65\x2d\x4e\x87\x65\r\x00\n\x00": UTF16LE,
	} {
		if v := Sniff([]byte(s), true); v.Encoding != want {
			t.Errorf("%q is taken for %s", s, v.Name)
		}
	}
}
