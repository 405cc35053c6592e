package scan

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/elfhost/elfhost/abi"
)

// sign is a mark of texts that were written to do harm. Each expression is
// linear in the text (RE2).
type sign struct {
	rule  string
	level Level
	says  string
	words string // in lower case, parted by '|': a text without any of them cannot match
	find  *regexp.Regexp
}

// match is where the sign is in a text; low is the text in lower case.
func (s *sign) match(text, low string) []int {
	for w := range strings.SplitSeq(s.words, "|") {
		if strings.Contains(low, w) {
			return s.find.FindStringIndex(text)
		}
	}
	return nil
}

// signs hold for every text.
var signs = []sign{
	{"speaks-against-the-person", Alarm, "it speaks to the model against the person", "ignore|disregard|forget|override", regexp.MustCompile(
		`(?i)\b(?:ignore|disregard|forget|override)\s+(?:all\s+|any\s+)?(?:of\s+)?(?:the\s+|your\s+|my\s+)?(?:previous|prior|above|earlier|other|system|preceding)\s+(?:instructions?|prompts?|rules?|messages?|directives?)`)},
	{"kept-from-the-person", Alarm, "it wants something kept from the person", "user|person|human|anyone", regexp.MustCompile(
		`(?i)\b(?:do\s*n[o']t|never|without)\s+(?:tell(?:ing)?|inform(?:ing)?|notify(?:ing)?|alert(?:ing)?|reveal(?:ing)?(?:\s+(?:this|it))?\s+to|show(?:ing)?\s+(?:this|it)\s+to|mention(?:ing)?\s+(?:this|it|any\s+of\s+this)\s+to)\s+(?:this\s+to\s+)?(?:the\s+)?(?:user|person|human|anyone)\b`)},
	{"reads-keys", Alarm, "it names keys or passwords of the machine", "/.ssh|/.aws|/.gnupg|/.netrc|/.kube|/.docker|/.config|id_rsa|id_ed25519|/etc/shadow", regexp.MustCompile(
		`(?:~|\$HOME|\$\{HOME\}|/root|/home/\w+)/\.(?:ssh/id_|ssh/\*|ssh\b[^/\w.]|aws/cred|gnupg\b|netrc\b|kube/config|docker/config|config/gcloud)|\bid_(?:rsa|ed25519)\b(?:[^.\w]|$)|/etc/shadow\b`)},
	{"protection-off", Alarm, "it turns protection off", "skip-permissions|xattr|spctl|executionpolicy|setenforce", regexp.MustCompile(
		`(?i)--dangerously-skip-permissions|\bxattr\s+-[a-z]*d[a-z]*\s+com\.apple\.quarantine|\bspctl\s+--master-disable|set-executionpolicy\s+(?:bypass|unrestricted)|\bsetenforce\s+0\b`)},
	{"download-run", Look, "a download that is run at once", "curl|wget|iwr|invoke-webrequest", regexp.MustCompile(
		`(?i)\b(?:curl|wget|iwr|invoke-webrequest)\b[^\n|]{0,300}\|\s*(?:sudo\s+(?:-\S+\s+)?)?(?:(?:ba|z|da|k)?sh\b|iex\b|invoke-expression\b|(?:python3?|node|perl|ruby)(?:\s+-)?\s*(?:[;&)\x60"']|$|\n))`)},
	{"download-run", Look, "a download that is run at once", "curl|wget|iwr|irm|new-object", regexp.MustCompile(
		`(?i)\b(?:ba|z|da|k)?sh\s+(?:-c\s+["']?|<\s*)[$<]?\(\s*(?:curl|wget)\b|\beval\s+["']?\$\(\s*(?:curl|wget)\b|\biex\s*\(\s*(?:iwr|irm|\(?new-object)`)},
	{"encoded-run", Alarm, "encoded text that is run", "base64|b64decode|powershell", regexp.MustCompile(
		`(?i)base64\s+(?:-d|-D|--decode)[^\n]{0,200}\|\s*(?:sudo\s+)?(?:(?:ba|z|da|k)?sh|python3?|node|perl)\b|\b(?:exec|eval)\s*\(\s*(?:\w+\.)?b64decode|\bpowershell\S*\s+-e(?:nc|ncodedcommand)?\s+[A-Za-z0-9+/]{40}`)},
	{"locked-archive", Alarm, "an archive with a password, which no scanner opens", "unzip|7z|password", regexp.MustCompile(
		`(?i)\bunzip\s+-P\b|\b7z\s+x\s+[^\n]{0,80}-p\S|(?:archive|zip|extract)\s+password\s*[:=]`)},
}

// lures hold for what a model reads as part of a tool: a description has no
// business with when other tools are used, or with what people are told.
var lures = []sign{
	{"commands-the-model", Alarm, "it gives the model orders that are not about the tool", "<|[|this|other tool|prompt", regexp.MustCompile(
		`(?i)<(?:important|system|instructions?|secret|hidden)>|\[(?:system|important|inst)\]|\b(?:you\s+must|always)\s+(?:first\s+)?(?:call|use|run|invoke)\s+this\s+(?:tool\s+)?(?:first|before)|\bbefore\s+(?:using|calling|running|invoking)\s+any\s+other\s+tools?|\binstead\s+of\s+(?:any|all)\s+other\s+tools?|\b(?:system|developer)\s+prompt\b`)},
	{"wants-the-conversation", Look, "it wants more of the conversation than the tool needs", "conversation|chat|messages|content", regexp.MustCompile(
		`(?i)\b(?:full|entire|whole|complete|all)\s+(?:of\s+the\s+)?(?:conversation|chat)\s*(?:history|log|context)?\b|\b(?:previous|prior)\s+(?:messages|conversation)\b|\bcontents?\s+of\s+(?:~|/|\.env\b)`)},
}

// text scans a file.
func (c *collector) text(t Text) {
	if !utf8.ValidString(t.Body) {
		c.add("not-text", Look, t.Name, "it is not valid UTF-8")
		t.Body = strings.ToValidUTF8(t.Body, "\ufffd")
	}
	c.prose(t.Name, t.Body, true)
	c.comments(t)
	c.blobs(t)
}

// prose scans a text with signs, and one that a model reads with a tool with
// lures too. Signs are looked for in the text as it is and without the
// characters that could be put between its letters to hide it.
func (c *collector) prose(where, body string, file bool) {
	if len(body) > MaxText {
		c.add("unread", Look, where, "it is too long to be looked through")
		return
	}
	c.hidden(where, body)
	shown := visible(body)
	all := signs
	if !file {
		all = append(all[:len(all):len(all)], lures...)
	}
	seen, low := map[string]bool{}, strings.ToLower(shown)
	for i := range all {
		s := &all[i]
		m := s.match(shown, low)
		if m == nil || seen[s.rule] {
			continue
		}
		seen[s.rule] = true
		c.add(s.rule, s.level, at(where, shown, m[0]), s.says+": "+line(shown[m[0]:m[1]], 80))
	}
}

// visible drops what nobody sees but keeps every end of a line, so that lines
// are counted alike.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r == 0x00ad || r == 0x200c || r == 0x200d {
			return -1
		}
		for _, k := range kinds {
			if k.is(r) {
				return -1
			}
		}
		return r
	}, s)
}

var (
	comment = regexp.MustCompile(`(?s)<!--(.*?)(?:-->|$)`)
	fence   = regexp.MustCompile("(?m)^[ \t>]*(```+|~~~+)")
	// orders are what a comment says that is meant for a model rather than for
	// whoever edits the text.
	orders = regexp.MustCompile(`(?i)\b(?:ignore|disregard|you\s+(?:must|should|are|will)|do\s+not|don't|never|always|must|execute|run|fetch|send|upload|curl|assistant|agent|model|claude|secret(?:ly)?|the\s+user)\b`)
)

// comments looks at what rendered Markdown leaves out, outside of code, where
// it is shown.
func (c *collector) comments(t Text) {
	if !strings.Contains(t.Body, "<!--") {
		return
	}
	body := outsideFences(t.Body)
	for _, m := range comment.FindAllStringSubmatchIndex(body, 100) {
		text := body[m[2]:m[3]]
		if words := strings.Fields(text); len(words) < 4 || !orders.MatchString(visible(text)) {
			continue
		}
		c.add("hidden-comment", Look, at(t.Name, body, m[0]), "a comment that rendered text does not show: "+line(text, 80))
		return
	}
}

// outsideFences blanks the fenced blocks of Markdown, line for line. A block
// that nothing closes stays, so that an odd fence hides no comment from us.
func outsideFences(body string) string {
	out := []byte(body)
	open, from := "", 0
	for _, m := range fence.FindAllStringSubmatchIndex(body, -1) {
		switch mark := body[m[2]:m[3]]; {
		case open == "":
			open, from = mark, m[0]
		case mark[0] == open[0] && len(mark) >= len(open):
			for j := from; j < m[1]; j++ {
				if out[j] != '\n' {
					out[j] = ' '
				}
			}
			open = ""
		}
	}
	return string(out)
}

var blob = regexp.MustCompile(`[A-Za-z0-9+/]{400,}={0,2}`)

// blobs finds long encoded texts, other than pictures, that hold more than a
// number or a key.
func (c *collector) blobs(t Text) {
	for _, m := range blob.FindAllStringIndex(t.Body, 50) {
		before := t.Body[max(0, m[0]-64):m[0]]
		if i := strings.LastIndex(before, "data:"); i >= 0 && (strings.HasPrefix(before[i:], "data:image/") || strings.HasPrefix(before[i:], "data:font/")) {
			continue
		}
		raw := strings.TrimRight(t.Body[m[0]:m[1]], "=")
		if !strings.ContainsFunc(raw, unicode.IsUpper) || !strings.ContainsFunc(raw, unicode.IsLower) {
			continue // hexadecimal, or a row of one letter
		}
		b, err := base64.RawStdEncoding.DecodeString(raw[:len(raw)/4*4])
		if err != nil {
			continue
		}
		c.add("encoded", Look, at(t.Name, t.Body, m[0]), fmt.Sprintf("a long encoded text: %d bytes, which decode to %s", m[1]-m[0], kindOf(b)))
		return
	}
}

// kindOf says what bytes are.
func kindOf(b []byte) string {
	for _, k := range []struct{ magic, what string }{
		{"\x7fELF", "a program"}, {"MZ", "a program"}, {"\xcf\xfa\xed\xfe", "a program"}, {"\x00asm", "a Wasm module"},
		{"PK\x03\x04", "an archive"}, {"\x1f\x8b", "an archive"}, {"\x89PNG", "a picture"}, {"\xff\xd8\xff", "a picture"}, {"GIF8", "a picture"},
	} {
		if bytes.HasPrefix(b, []byte(k.magic)) {
			return k.what
		}
	}
	if utf8.Valid(b) && !bytes.ContainsFunc(b, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }) {
		return "text: " + line(string(b), 40)
	}
	return "something else"
}

// tool scans all that a model is told of a tool: its description, and every
// text in its schemas.
func (c *collector) tool(t abi.ToolDecl) {
	where := "tool " + t.Name
	c.prose(where, t.Description, false)
	for _, schema := range []json.RawMessage{t.Input, t.Output} {
		if len(schema) == 0 || len(schema) > MaxText {
			continue
		}
		var all strings.Builder
		dec := json.NewDecoder(bytes.NewReader(schema))
		for {
			tok, err := dec.Token()
			if err != nil {
				break
			}
			if s, ok := tok.(string); ok {
				all.WriteString(s)
				all.WriteByte('\n')
			}
		}
		c.prose(where, all.String(), false)
	}
}
