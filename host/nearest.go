package host

import (
	"strings"

	"github.com/elfhost/elfhost/abi"
)

// unknown is the answer to a call of a tool that is not there: the nearest
// name, then all of them, so that the model can go on.
func (r *Registry) unknown(name string) abi.Result {
	names := r.Names()
	shown := strings.ToValidUTF8(cut(name, 100), "\uFFFD")
	if len(names) == 0 {
		return abi.Errorf("There is no tool named %q. No tools are available.", shown)
	}
	var b strings.Builder
	if near := nearest(name, names); near != "" {
		b.WriteString(" Did you mean " + near + "?")
	}
	b.WriteString(" Available tools: " + strings.Join(names, ", ") + ".")
	return abi.Errorf("There is no tool named %q.%s", shown, b.String())
}

// nearest finds the name that differs least, if it is near enough to be meant.
func nearest(name string, names []string) string {
	if len(name) > 64 {
		return ""
	}
	best, least := "", max(2, len(name)/3)+1
	for _, n := range names {
		d := distance(letters(name), letters(n))
		if strings.HasSuffix(n, "__"+name) { // the server's prefix was left out
			d = 0
		}
		if d < least {
			best, least = n, d
		}
	}
	return best
}

// letters is a name without what models get wrong: case and separators.
func letters(s string) string {
	return strings.NewReplacer("_", "", "-", "", ".", "").Replace(strings.ToLower(s))
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := diagonal
			if a[i] != b[j] {
				next = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
