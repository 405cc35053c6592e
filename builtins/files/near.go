package files

import (
	"context"
	"fmt"
	"path"
	"sort"
	"strings"

	"github.com/elfhost/elfhost/host/policy"
)

// near suggests names for one that does not exist: alike ones in its folder,
// or the deepest folder above that does exist. It never asks a person.
func (r *room) near(ctx context.Context, rights policy.Rights, t target) string {
	rights.Decide = nil
	dir, want := path.Split(t.name)
	dir = path.Clean(dir)
	entries, err := r.tree.ReadDir(ctx, rights, dir)
	if err != nil {
		for dir != "/" && dir != "." {
			dir = path.Dir(dir)
			if _, err := r.tree.ReadDir(ctx, rights, dir); err == nil {
				return fmt.Sprintf(" Its folder does not exist either; %s does.", r.tree.Display(r.cwd(), dir))
			}
		}
		return ""
	}
	type scored struct {
		name string
		far  int
	}
	var near []scored
	for _, e := range entries[:min(len(entries), 10_000)] {
		if far := distance(want, e.Name()); far <= max(2, len(want)/3) {
			near = append(near, scored{e.Name(), far})
		}
	}
	sort.SliceStable(near, func(i, j int) bool { return near[i].far < near[j].far })
	var names []string
	for _, n := range near[:min(len(near), 3)] {
		names = append(names, r.tree.Display(r.cwd(), path.Join(dir, n.name)))
	}
	if len(names) == 0 {
		return ""
	}
	return " Did you mean " + strings.Join(names, " or ") + "?"
}

// distance is how unlike two names are: the edits between them, case and
// extension counting little.
func distance(a, b string) int {
	if len(a) > 255 || len(b) > 255 {
		return 1 << 10
	}
	la, lb := strings.ToLower(a), strings.ToLower(b)
	if la == lb {
		return 0
	}
	sa, sb := strings.TrimSuffix(la, path.Ext(la)), strings.TrimSuffix(lb, path.Ext(lb))
	if sa == sb && sa != "" || la == sb || sa == lb {
		return 1
	}
	return edits(la, lb)
}

// edits is the Levenshtein distance in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
