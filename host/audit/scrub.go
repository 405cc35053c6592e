package audit

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"
)

// scrubber replaces what looks like a secret. It errs on the side of replacing.
type scrubber struct {
	known func(string) string // takes out secrets in use; may be nil
}

// Shapes of secrets. A shape is looked for only in text that has its hint: the
// log is on the path of every call.
var shapes = []struct {
	hints []string // in lower case
	re    *regexp.Regexp
	to    string
}{
	{[]string{"-----begin"}, regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`), "[redacted private key]"},
	{[]string{"://"}, regexp.MustCompile(`(://)[^/\s"'@]*@`), "${1}[redacted]@"},
	{[]string{"bearer ", "basic ", "negotiate "}, regexp.MustCompile(`(?i)\b(bearer|basic|negotiate)\s+[A-Za-z0-9._~+/=-]{6,}`), "$1 [redacted]"},
	{[]string{"sk-", "sk_", "rk_", "pk_"}, regexp.MustCompile(`\b[srp]k[-_][A-Za-z0-9_-]{12,}`), "[redacted key]"},
	{[]string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "npm_", "pypi-", "hf_", "xai-", "gsk_", "tvly-", "jina_"}, regexp.MustCompile(`\b(gh[pousr]_|github_pat_|glpat-|npm_|pypi-|hf_|xai-|gsk_|tvly-|jina_)[A-Za-z0-9_-]{10,}`), "[redacted token]"},
	{[]string{"xox", "xapp-"}, regexp.MustCompile(`\b(xox[a-z]|xapp)-[A-Za-z0-9-]{8,}`), "[redacted token]"},
	{[]string{"akia", "asia"}, regexp.MustCompile(`\b(AKIA|ASIA)[0-9A-Z]{16}\b`), "[redacted key]"},
	{[]string{"aiza"}, regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{30,}`), "[redacted key]"},
	{[]string{"eyj"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}(\.[A-Za-z0-9_-]*){1,4}`), "[redacted token]"},
	{[]string{"passw", "passphrase", "pwd", "secret", "token", "apikey", "api_key", "api-key", "access_key", "private_key", "credential", "authorization", "cookie", "signature", "sig="},
		regexp.MustCompile(`(?i)([\w.-]*(?:passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access_key|private_key|credentials?|authorization|cookie|signature|sig)["']?\s*(?:[:=]|\s--?\s)\s*)("(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'&,;}]+)`), "${1}[redacted]"},
	{[]string{"-u ", "--user "}, regexp.MustCompile(`((?:^|\s)(?:-u|--user)\s+["']?[^\s:"']+:)[^\s"']+`), "${1}[redacted]"},
	{[]string{"-p"}, regexp.MustCompile(`((?:mysql|mysqldump|mysqladmin|mariadb)\b[^|;&]*?\s-p)[^\s"']+`), "${1}[redacted]"},
	{[]string{"--password", "--token", "--secret", "--api-key", "--apikey", "-p "}, regexp.MustCompile(`(?i)(--(?:password|token|secret|api-?key)\s+)\S+`), "${1}[redacted]"},
}

// text scrubs free text.
func (s *scrubber) text(t string) string {
	if len(t) < 6 {
		return t
	}
	if s.known != nil {
		t = s.known(t)
	}
	if len(t) > 64<<10 {
		t = t[:64<<10] // cut to far less afterwards
	}
	low := strings.ToLower(t)
	for _, sh := range shapes {
		for _, h := range sh.hints {
			if strings.Contains(low, h) {
				t = sh.re.ReplaceAllString(t, sh.to)
				break
			}
		}
	}
	return random(t)
}

// json scrubs JSON; escapes, in which a secret could hide, are resolved first.
func (s *scrubber) json(t string) string {
	if strings.Contains(t, `\`) {
		var v any
		d := json.NewDecoder(strings.NewReader(t))
		d.UseNumber()
		if d.Decode(&v) == nil {
			var b strings.Builder
			e := json.NewEncoder(&b)
			e.SetEscapeHTML(false)
			if e.Encode(s.value(v)) == nil {
				t = strings.TrimSuffix(b.String(), "\n")
			}
		}
	}
	return s.text(t)
}

// value scrubs the strings of a decoded value one by one.
func (s *scrubber) value(v any) any {
	switch v := v.(type) {
	case string:
		return s.text(v)
	case []any:
		for i := range v {
			v[i] = s.value(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = s.value(v[k])
		}
	}
	return v
}

func (s *scrubber) list(in []string) []string {
	out := make([]string, len(in))
	for i, t := range in {
		out[i] = shorten(s.text(t), maxText)
	}
	return out
}

// minRandom is the length from which a word can be a random secret.
const minRandom = 20

// random replaces words that look drawn at random: long, of letters and
// digits mixed, with more information a character than words of people have.
func random(t string) string {
	var b strings.Builder
	from := 0
	for i := 0; i < len(t); {
		if !wordByte(t[i]) {
			i++
			continue
		}
		start := i
		for i < len(t) && wordByte(t[i]) {
			i++
		}
		if i-start >= minRandom && looksRandom(t[start:i]) {
			b.WriteString(t[from:start])
			b.WriteString("[redacted]")
			from = i
		}
	}
	if from == 0 {
		return t
	}
	return b.String() + t[from:]
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '_' || c == '-'
}

func looksRandom(w string) bool {
	var count [256]int
	lower, upper, digits, hex := 0, 0, 0, true
	for i := range len(w) {
		c := w[i]
		count[c]++
		switch {
		case c >= 'a' && c <= 'z':
			lower++
			hex = hex && c <= 'f'
		case c >= 'A' && c <= 'Z':
			upper++
			hex = hex && c <= 'F'
		case c >= '0' && c <= '9':
			digits++
		default:
			hex = false
		}
	}
	bits := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(w))
			bits -= p * math.Log2(p)
		}
	}
	if !hex {
		for part := range strings.FieldsFuncSeq(w, func(r rune) bool { return r == '-' || r == '_' || r == '+' }) {
			if len(part) >= 32 && len(part) < len(w) && looksRandom(part) {
				return true
			}
		}
	}
	switch {
	case hex && len(w) >= 32:
		return digits > 0 && lower+upper > 0 && bits > 3
	case digits == 0 || lower+upper == 0:
		return false
	case lower > 0 && upper > 0:
		return bits > 3.6
	}
	return len(w) >= 24 && bits > 3.9
}
