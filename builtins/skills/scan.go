package skills

import "github.com/elfhost/elfhost/skillhub/scan"

// flags lists what a person should look at before a skill is used, one clause
// each. Nothing depends on it, because no text gives a right.
func flags(text string, tools []string) (out []string) {
	for _, f := range scan.Skill(text, tools) {
		out = append(out, f.Says)
	}
	return out
}
