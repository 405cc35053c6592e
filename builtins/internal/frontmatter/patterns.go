package frontmatter

import (
	"slices"
	"strings"

	"github.com/elfhost/elfhost/host/policy"
)

// dialects pairs the names that one tool has in both.
var dialects = [][2]string{
	{"Bash", "Shell"}, {"Read", "ReadFile"}, {"Write", "WriteFile"}, {"Edit", "EditFile"},
	{"spawn_agent", "Subagent"},
}

// looking are tools for which the acp dialect has its search.
var looking = []string{"Grep", "Glob", "ListDir", "LS"}

// Patterns are what a list of allowed tools leaves. Tools of either dialect
// are meant by their names in the other. What cannot be read leaves nothing: a
// list can only narrow.
func Patterns(tools []string) (out []policy.Pattern) {
	for _, text := range tools {
		p, err := policy.ParsePattern(text)
		if err != nil {
			continue
		}
		out = append(out, p)
		name, rest, scoped := strings.Cut(text, "(")
		if p, err := policy.ParsePattern("search"); err == nil && !scoped && slices.Contains(looking, name) {
			out = append(out, p)
		}
		for _, pair := range dialects {
			if i := slices.Index(pair[:], name); i >= 0 {
				twin := strings.TrimSuffix(pair[1-i]+"("+rest, "(")
				if p, err := policy.ParsePattern(twin); err == nil {
					out = append(out, p)
				}
			}
		}
	}
	return out
}
