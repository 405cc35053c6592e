package pack

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// checkName holds for names that mean the same file, inside the package's own
// folder, on every system.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("an entry has no name")
	case len(name) > maxName:
		return fmt.Errorf("the name %.40q… is longer than %d bytes", name, maxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("the name %q is not UTF-8", name)
	case strings.HasPrefix(name, "/"):
		return fmt.Errorf("the name %q is absolute", name)
	case strings.ContainsAny(name, `\:*?"<>|`):
		return fmt.Errorf("the name %q holds a character that some system gives a meaning", name)
	case strings.ContainsFunc(name, unseen):
		return fmt.Errorf("the name %q holds invisible characters", name)
	case strings.Count(name, "/") >= maxDepth:
		return fmt.Errorf("the name %.40q… is more than %d folders deep", name, maxDepth)
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "" || part == "." || part == "..":
			return fmt.Errorf("the name %q leads out of the package, or around in it", name)
		case len(part) > maxPart:
			return fmt.Errorf("a part of the name %.40q… is longer than %d bytes", name, maxPart)
		case part[0] == '.':
			return fmt.Errorf("%q is a hidden file", name)
		case strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") || part[0] == ' ':
			return fmt.Errorf("a part of the name %q begins or ends so that Windows changes it", name)
		case isDevice(part):
			return fmt.Errorf("a part of the name %q is a device on Windows", name)
		}
	}
	return nil
}

func unseen(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp) ||
		r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0100 && r <= 0xe01ef
}

// isDevice reports names that Windows takes for a device, whatever follows the
// first dot.
func isDevice(part string) bool {
	base, _, _ := strings.Cut(strings.ToLower(part), ".")
	base = strings.TrimRight(base, " ")
	switch base {
	case "con", "prn", "aux", "nul", "conin$", "conout$", "clock$":
		return true
	}
	for _, p := range []string{"com", "lpt"} {
		if n, ok := strings.CutPrefix(base, p); ok && (len(n) == 1 && n >= "0" && n <= "9" || n == "¹" || n == "²" || n == "³") {
			return true
		}
	}
	return false
}

// fold is the same for names that some file system takes for the same.
func fold(name string) string { return strings.ToLower(strings.ToUpper(norm.NFKC.String(name))) }

// names sees to it that no two entries are one file anywhere: no duplicates, no
// pairs that differ by case or by how they are composed, no file that is a
// folder as well.
type names struct {
	last string            // of the files, for the order
	seen map[string]string // folded → as it is written; folders end with "/"
}

func (n *names) add(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if n.seen == nil {
		n.seen = map[string]string{}
	}
	key := fold(name)
	if have, ok := n.seen[key]; ok && have == name {
		return fmt.Errorf("%q is there twice", name)
	} else if ok {
		return fmt.Errorf("%q and %q are one name on some systems", strings.TrimSuffix(have, "/"), name)
	}
	n.seen[key] = name
	for i, c := range name {
		if c != '/' {
			continue
		}
		dir := name[:i]
		key := fold(dir)
		switch have, ok := n.seen[key]; {
		case !ok:
			n.seen[key] = dir + "/"
		case have == dir:
			return fmt.Errorf("%q is a file and a folder", dir)
		case have != dir+"/":
			return fmt.Errorf("%q and %q are one name on some systems", strings.TrimSuffix(have, "/"), dir)
		}
	}
	if name < n.last {
		return fmt.Errorf("%q comes after %q: names are in the order of their bytes", name, n.last)
	}
	n.last = name
	return nil
}
