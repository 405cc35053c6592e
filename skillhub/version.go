package skillhub

import (
	"cmp"
	"strings"
)

// CompareVersions orders versions as Semantic Versioning 2.0 does (section
// 11): -1 when a is older than b. A part that is missing counts as 0, a leading
// "v" and what follows '+' count for nothing, and parts that are no numbers are
// compared as texts, so that every version that CheckVersion takes has a place.
func CompareVersions(a, b string) int {
	a, preA := cutVersion(a)
	b, preB := cutVersion(b)
	if c := compareParts(a, b, "0"); c != 0 {
		return c
	}
	switch {
	case preA == preB:
		return 0
	case preA == "":
		return 1
	case preB == "":
		return -1
	}
	return compareParts(preA, preB, "")
}

// Prerelease reports whether a version is one that is only taken by name.
func Prerelease(v string) bool {
	_, pre := cutVersion(v)
	return pre != ""
}

func cutVersion(v string) (core, pre string) {
	v, _, _ = strings.Cut(v, "+")
	if rest, ok := strings.CutPrefix(v, "v"); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
		v = rest
	}
	core, pre, _ = strings.Cut(v, "-")
	return core, pre
}

// compareParts compares dotted parts; missing stands for one that is not there.
func compareParts(a, b, missing string) int {
	for a != "" || b != "" {
		var x, y string
		x, a, _ = strings.Cut(a, ".")
		y, b, _ = strings.Cut(b, ".")
		if x == "" {
			x = missing
		}
		if y == "" {
			y = missing
		}
		if c := comparePart(x, y); c != 0 {
			return c
		}
	}
	return 0
}

// comparePart: numbers by value, however long, and before texts; nothing
// before everything.
func comparePart(x, y string) int {
	nx, ny := number(x), number(y)
	switch {
	case nx && ny:
		x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		if c := cmp.Compare(len(x), len(y)); c != 0 {
			return c
		}
	case x == "" || y == "":
		return cmp.Compare(len(x), len(y))
	case nx:
		return -1
	case ny:
		return 1
	}
	return strings.Compare(x, y)
}

func number(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
