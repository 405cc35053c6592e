package skills

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/builtins/internal/plain"
)

// Scan lists what a person should look at before a skill is used, one clause
// each. It finds what is common, not what is clever: nothing depends on it,
// because no text gives a right.
func Scan(text string, tools []string) (flags []string) {
	if n := strings.Count(text, "") - strings.Count(plain.Visible(text), "") - strings.Count(text, "\r"); n > 0 {
		// A mark at the very start of the file is an encoding, not a message.
		if !(n == 1 && strings.HasPrefix(text, "\ufeff")) {
			flags = append(flags, fmt.Sprintf("%d invisible characters; they are not shown to the model", n))
		}
	}
	for _, s := range signs {
		if m := s.find.FindString(text); m != "" {
			flags = append(flags, s.what+": "+plain.Line(m, 80))
		}
	}
	if slices.ContainsFunc(tools, anyCommand) {
		flags = append(flags, "it names every command as allowed; that gives it none")
	}
	return flags
}

// anyCommand recognises the entries of allowed-tools that mean all commands.
func anyCommand(t string) bool {
	t = strings.ReplaceAll(t, " ", "")
	return t == "*" || t == "Bash(*)" || t == "Bash(:*)" || t == "Shell(*)" || t == "Bash(**)"
}

// signs are the marks of skills that were written to do harm. Each expression
// is linear in the text.
var signs = []struct {
	what string
	find *regexp.Regexp
}{
	{"a comment that rendered text does not show", regexp.MustCompile(`(?s)<!--.{0,400}?(?:-->|$)`)},
	{"a download that is run at once", regexp.MustCompile(`(?i)\b(?:curl|wget|iwr|invoke-webrequest)\b[^\n|]{0,300}\|\s*(?:sudo\s+)?(?:ba|z|da|k)?(?:sh|iex|python3?|node|perl|ruby)\b`)},
	{"a download that is run at once", regexp.MustCompile(`(?i)\b(?:ba|z|da)?sh\s+(?:-c\s+["']?|<\s*)[$<]?\(\s*(?:curl|wget)\b`)},
	{"encoded text that is run", regexp.MustCompile(`(?i)base64\s+(?:-d|-D|--decode)[^\n]{0,200}\|\s*(?:ba|z|da)?sh\b`)},
	{"a long encoded text", regexp.MustCompile(`[A-Za-z0-9+/]{600}`)},
	{"it speaks to the model against the person", regexp.MustCompile(`(?i)\b(?:ignore|disregard|forget)\s+(?:all\s+|any\s+)?(?:the\s+|your\s+)?(?:previous|prior|above|earlier|other|system)\s+(?:instructions?|prompts?|rules?|messages?)`)},
	{"it wants something kept from the person", regexp.MustCompile(`(?i)\b(?:do\s*n[o']t|never|without)\s+(?:tell(?:ing)?|inform(?:ing)?|show(?:ing)?|mention(?:ing)?\s+(?:this|it)\s+to|ask(?:ing)?)\s+(?:this\s+to\s+)?the\s+(?:user|person|human)`)},
	{"it names keys or passwords of the machine", regexp.MustCompile(`(?:~|\$HOME|/root|/home/\w+)/\.(?:ssh|aws|gnupg|netrc|kube|config/gcloud)\b|\bid_(?:rsa|ed25519)\b|/etc/shadow\b`)},
	{"it turns protection off", regexp.MustCompile(`(?i)--dangerously-skip-permissions|--no-sandbox\b|\bxattr\s+-[a-z]*d[a-z]*\s+com\.apple\.quarantine|\bspctl\s+--master-disable|set-executionpolicy\s+(?:bypass|unrestricted)`)},
	{"an archive with a password", regexp.MustCompile(`(?i)\bunzip\s+-P\b|\b7z\s+x\s+[^\n]{0,80}-p\S|(?:archive|zip)\s+password\s*[:=]`)},
}
