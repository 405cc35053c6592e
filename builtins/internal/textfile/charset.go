package textfile

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// Names of what was not told apart. They stand after "text in".
const (
	unknownCharset = "a charset that could not be told"
	latinCharset   = "a Latin charset such as ISO-8859-1 or windows-1252"
)

// declared finds a charset that the text itself names: HTML, XML, CSS, Python, Vim.
var declared = regexp.MustCompile(`(?i)(?:charset|encoding|coding)\s*[=:]\s*["']?([a-z0-9][a-z0-9_-]{2,30})`)

// legacyName names the charset of text that is not Unicode, or says that it
// does not know: a person who converts from the wrong one damages the file.
func legacyName(b []byte) string {
	if m := declared.FindSubmatch(b[:min(len(b), 2048)]); m != nil {
		name := strings.ToLower(string(m[1]))
		if enc, err := htmlindex.Get(name); err == nil && !strings.HasPrefix(name, "utf") && decodes(b, enc) {
			return name
		}
	}
	words := clustered(b)
	if !words && latin(b) {
		return latinCharset
	}
	var best, second float64
	name := unknownCharset
	for _, c := range candidates {
		if c.alphabet && !words {
			continue
		}
		switch s := c.score(b); {
		case s > best:
			best, second, name = s, best, c.name
		case s > second:
			second = s
		}
	}
	if best < 1 || second > best*0.7 {
		return unknownCharset
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

// latin reports text in a Western or Central European language: what is not
// ASCII are letters within words of ASCII letters, and a few signs.
func latin(b []byte) bool {
	letter := func(i int) bool { return i >= 0 && i < len(b) && (b[i]|0x20 >= 'a' && b[i]|0x20 <= 'z') }
	within, high, plain := 0, 0, 0
	for i, c := range b {
		switch {
		case c < 0x80:
			if letter(i) {
				plain++
			}
		case c < 0xA0 && strings.IndexByte("\x80\x85\x8a\x8c\x91\x92\x93\x94\x95\x96\x97\x99\x9a\x9c\x9f", c) < 0:
			return false
		default:
			high++
			if letter(i-1) || letter(i+1) {
				within++
			}
		}
	}
	return within*2 > high && plain > 2*high
}

// candidate is a charset with what the texts in it mostly consist of.
type candidate struct {
	name    string
	enc     encoding.Encoding
	typical func(rune) bool
	share   float64 // of what is not ASCII, that is typical in ordinary text
	// alphabet is set where a letter is one byte, so that they stand in rows.
	alphabet bool
}

var candidates = [...]candidate{
	{"windows-1251", charmap.Windows1251, in(cyrillic), 0.5, true},
	{"KOI8-R", charmap.KOI8R, in(cyrillic), 0.5, true},
	{"IBM866", charmap.CodePage866, in(cyrillic), 0.5, true},
	{"ISO-8859-5", charmap.ISO8859_5, in(cyrillic), 0.5, true},
	{"windows-1253 or ISO-8859-7", charmap.ISO8859_7, in(greek), 0.55, true},
	{"windows-1255 or ISO-8859-8", charmap.Windows1255, in(hebrew), 0.6, true},
	{"windows-1256 or ISO-8859-6", charmap.Windows1256, in(arabic), 0.55, true},
	{"Shift_JIS", japanese.ShiftJIS, japan, 0.45, false},
	{"EUC-JP", japanese.EUCJP, japan, 0.45, false},
	{"GBK", simplifiedchinese.GBK, in(hanzi), 0.4, false},
	{"Big5", traditionalchinese.Big5, in(hanziT), 0.4, false},
	{"EUC-KR", korean.EUCKR, in(hangul), 0.4, false},
}

func in(letters string) func(rune) bool {
	return func(r rune) bool { return strings.ContainsRune(letters, r) }
}

// japan is what Japanese has besides kanji. Half-width kana are not in it:
// every Cyrillic text reads as those.
func japan(r rune) bool {
	return r >= 0x3041 && r <= 0x30FE || strings.ContainsRune("。、「」日本人一大年中国会上出生分行", r)
}

// The most frequent letters, in the lower case that most of a text has.
const (
	cyrillic = "оеаинтсрвлі"
	greek    = "αοιετσνρηυπκ"
	hebrew   = "יוהלאמרשבתנ"
	arabic   = "اليمنرتوب"
	hanzi    = "的一是不了人我在有他这中大来上个国到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能好都然没日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长知民样现分将外但身些与高意进把法此实回二理美点月明其种声全工己话儿者向情部正名定女问力机给等几很业最间新什打便位因重被走电四第门相次东政海口使教西再平真听世气信北少关并内加化由却代军产入先山五太水万市眼体别处总才场师书比住员性通目报立数件表原应期提更反合放做系计或司利受果界及今务制解各任物记边共接它特望直题建度统色字请交让，。、：；！？（）“”"
	hanziT   = "的一是不了人我在有他這中大來上個國到說們為子和你地出道也時年得就那要下以生會自著去之過家學對可她里後小麼心多天而能好都然沒日於起還發成事只作當想看文無開手十用主行方又如前所本見經頭面公同三已老從動兩長知民樣現分將外但身些與高意進把法此實回二理美點月明其種聲全工己話兒者向情部正名定女問力機給等幾很業最間新什打便位因重被走電四第門相次東政海口使教西再平真聽世氣信北少關並內加化由卻代軍產入先山五太水萬市眼體別處總才場師書比住員性通目報立數件表原應期提更反合放做系計或司利受果界及今務制解各任物記邊共接它特望直題建度統色字請交讓，。、：；！？（）「」"
	hangul   = "이다는을에의가고를한하은지사자로어인시도기서나대해리아정과일라그수보전제부원있것들만년여러되와면세상성주조게말우등습니까요공국생구중"
)

// evidence is how many typical letters a verdict needs.
const evidence = 4

// score is 1 for text that has just what is usual in the charset, and 0 for
// what does not decode, or is too little to say.
func (c candidate) score(b []byte) float64 {
	b = b[:min(len(b), 4096)]
	text, err := c.enc.NewDecoder().Bytes(b)
	if err != nil {
		return 0
	}
	hits, other, bad, odd := 0, 0, 0, 0
	var before rune
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		text = text[n:]
		if unicode.IsUpper(r) && unicode.IsLower(before) && r >= utf8.RuneSelf {
			odd++ // as where another charset has the small letter
		}
		before = r
		switch {
		case r < utf8.RuneSelf:
		case r == utf8.RuneError:
			bad++
			if len(text) > 0 || bad > 1 { // the end may be cut
				return 0
			}
		case c.typical(r):
			hits++
		case unicode.IsControl(r), unicode.Is(unicode.Co, r):
			return 0
		default:
			other++
		}
	}
	if hits < evidence || c.alphabet && odd*50 > hits {
		return 0
	}
	return float64(hits) / float64(hits+other) / c.share
}

// decodes reports whether nothing in the text is foreign to the charset.
func decodes(b []byte, enc encoding.Encoding) bool {
	text, err := enc.NewDecoder().Bytes(b[:min(len(b), 4096)])
	i := strings.IndexRune(string(text), utf8.RuneError)
	return err == nil && (i < 0 || i >= len(text)-2*utf8.UTFMax)
}
