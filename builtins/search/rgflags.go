package search

import (
	"fmt"
	"strconv"
	"strings"
)

// rgCommand is a parsed rg command line.
type rgCommand struct {
	query
	layout
	paths    []string
	quiet    bool
	typeList bool
	smart    bool
	patterns bool // given with -e
	names    *bool
	heads    *bool
	unrest   int // how many -u
}

// flag is one of ripgrep's flags.
type flag struct {
	short byte
	long  string
	value bool // takes one
	set   func(c *rgCommand, v string) error
}

// flags are those that rg does. The first name of a row is ripgrep's; rows
// that set nothing say what is so anyway.
func flags() []flag {
	on := func(f func(*rgCommand)) func(*rgCommand, string) error {
		return func(c *rgCommand, _ string) error { f(c); return nil }
	}
	number := func(f func(*rgCommand, int)) func(*rgCommand, string) error {
		return func(c *rgCommand, v string) error {
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 {
				return fmt.Errorf("%q is not a number", v)
			}
			f(c, min(n, 1<<30))
			return nil
		}
	}
	text := func(f func(*rgCommand, string)) func(*rgCommand, string) error {
		return func(c *rgCommand, v string) error { f(c, v); return nil }
	}
	nothing := on(func(*rgCommand) {})
	yes, no := true, false
	return []flag{
		{'e', "regexp", true, text(func(c *rgCommand, v string) { c.exprs, c.patterns = append(c.exprs, v), true })},
		{'F', "fixed-strings", false, on(func(c *rgCommand) { c.fixed = true })},
		{'i', "ignore-case", false, on(func(c *rgCommand) { c.ignoreCase, c.smart = true, false })},
		{'s', "case-sensitive", false, on(func(c *rgCommand) { c.ignoreCase, c.smart = false, false })},
		{'S', "smart-case", false, on(func(c *rgCommand) { c.ignoreCase, c.smart = false, true })},
		{'w', "word-regexp", false, on(func(c *rgCommand) { c.word, c.wholeLine = true, false })},
		{'x', "line-regexp", false, on(func(c *rgCommand) { c.wholeLine, c.word = true, false })},
		{'v', "invert-match", false, on(func(c *rgCommand) { c.invert = true })},
		{'U', "multiline", false, on(func(c *rgCommand) { c.multiline = true })},
		{0, "multiline-dotall", false, on(func(c *rgCommand) { c.dotAll = true })},
		{'m', "max-count", true, number(func(c *rgCommand, n int) { c.perFile = n })},
		{'A', "after-context", true, number(func(c *rgCommand, n int) { c.after = n })},
		{'B', "before-context", true, number(func(c *rgCommand, n int) { c.before = n })},
		{'C', "context", true, number(func(c *rgCommand, n int) { c.before, c.after = n, n })},
		{'l', "files-with-matches", false, on(func(c *rgCommand) { c.mode = showFiles })},
		{0, "files-without-match", false, on(func(c *rgCommand) { c.mode = showFilesWithout })},
		{'c', "count", false, on(func(c *rgCommand) { c.mode = showCounts })},
		{0, "count-matches", false, on(func(c *rgCommand) { c.mode = showCountMatches })},
		{0, "files", false, on(func(c *rgCommand) { c.mode = listFiles })},
		{'o', "only-matching", false, on(func(c *rgCommand) { c.query.only, c.layout.only = true, true })},
		{'r', "replace", true, text(func(c *rgCommand, v string) { c.replace = &v })},
		{'n', "line-number", false, on(func(c *rgCommand) { c.numbers = true })},
		{'N', "no-line-number", false, on(func(c *rgCommand) { c.numbers = false })},
		{0, "column", false, on(func(c *rgCommand) { c.column, c.query.columns, c.numbers = true, true, true })},
		{0, "vimgrep", false, on(func(c *rgCommand) {
			c.column, c.query.columns, c.numbers, c.names, c.heads = true, true, true, &yes, &no
		})},
		{'H', "with-filename", false, on(func(c *rgCommand) { c.names = &yes })},
		{'I', "no-filename", false, on(func(c *rgCommand) { c.names = &no })},
		{0, "heading", false, on(func(c *rgCommand) { c.heads = &yes })},
		{0, "no-heading", false, on(func(c *rgCommand) { c.heads = &no })},
		{'p', "pretty", false, on(func(c *rgCommand) { c.heads, c.numbers = &yes, true })},
		{0, "trim", false, on(func(c *rgCommand) { c.trim = true })},
		{'M', "max-columns", true, number(func(c *rgCommand, n int) { c.layout.columns = n })},
		{0, "max-columns-preview", false, on(func(c *rgCommand) { c.preview = true })},
		{'g', "glob", true, text(func(c *rgCommand, v string) { c.globs = append(c.globs, v) })},
		{0, "iglob", true, text(func(c *rgCommand, v string) { c.iglobs = append(c.iglobs, v) })},
		{'t', "type", true, text(func(c *rgCommand, v string) { c.types = append(c.types, v) })},
		{'T', "type-not", true, text(func(c *rgCommand, v string) { c.notTypes = append(c.notTypes, v) })},
		{0, "type-list", false, on(func(c *rgCommand) { c.typeList = true })},
		{'.', "hidden", false, on(func(c *rgCommand) { c.hidden, c.vcs = true, true })},
		{0, "no-hidden", false, on(func(c *rgCommand) { c.hidden, c.vcs = false, false })},
		{0, "no-ignore", false, on(func(c *rgCommand) { c.noIgnore = true })},
		{0, "no-ignore-vcs", false, on(func(c *rgCommand) { c.noVCS = true })},
		{'u', "unrestricted", false, on((*rgCommand).unrestrict)},
		{'a', "text", false, on(func(c *rgCommand) { c.asText = true })},
		{'d', "max-depth", true, number(func(c *rgCommand, n int) { c.maxDepth = n })},
		{0, "maxdepth", true, number(func(c *rgCommand, n int) { c.maxDepth = n })},
		{0, "sort", true, func(c *rgCommand, v string) error { return c.order(v, false) }},
		{0, "sortr", true, func(c *rgCommand, v string) error { return c.order(v, true) }},
		{'q', "quiet", false, on(func(c *rgCommand) { c.quiet = true })},
		{0, "color", true, nothing}, {0, "colors", true, nothing}, {0, "no-config", false, nothing},
		{0, "no-messages", false, nothing}, {0, "no-mmap", false, nothing}, {0, "mmap", false, nothing},
		{0, "line-buffered", false, nothing}, {0, "no-require-git", false, nothing},
		{0, "no-follow", false, nothing}, {0, "no-pre", false, nothing}, {'j', "threads", true, nothing},
		{0, "no-unicode", false, nothing},
	}
}

func (c *rgCommand) unrestrict() {
	switch c.unrest++; c.unrest {
	case 1:
		c.noIgnore = true
	case 2:
		c.hidden, c.vcs = true, true
	default:
		c.asText = true
	}
}

func (c *rgCommand) order(by string, reverse bool) error {
	switch by {
	case "path", "none":
		c.sortBy = ""
	case "modified":
		c.sortBy = by
	default:
		return fmt.Errorf("sorting by %q is not done here; path and modified are", by)
	}
	c.reverse = reverse
	return nil
}

// reasons say why some flags of ripgrep are not done.
var reasons = map[string]string{
	"pre": "it runs a program", "pre-glob": "it runs a program", "hostname-bin": "it runs a program",
	"file": "it reads patterns from a file; give them with -e", "ignore-file": "it reads rules from a file; use -g",
	"follow": "links are not followed in walks", "search-zip": "compressed files are not searched",
	"unicode": `\w, \d, \s and \b know ASCII alone; write \p{L}, \p{Nd}`,
	"pcre2":   "the engine is RE2, which has no look-around and no back-references", "auto-hybrid-regex": "the engine is RE2",
	"engine": "the engine is RE2", "json": "the answer is text", "encoding": "UTF-8 and UTF-16 are recognised by themselves",
	"passthru": "use Read to see a whole file", "null": "the answer is text", "null-data": "lines end in newlines",
	"type-add": "use -g", "type-clear": "use -g",
	"stats": "use --count or --count-matches", "byte-offset": "matches are found by line and --column, not by byte", "debug": "there is no program to watch", "trace": "there is no program to watch",
	"version": "this is no program but a tool that takes ripgrep's flags", "help": "the tool's description says what it takes", "generate": "this is no program but a tool that takes ripgrep's flags",
	"max-filesize": "use -g to leave files out", "one-file-system": "the workspace is searched as it is", "path-separator": "the answer is for reading",
	"context-separator": leftOut, "no-context-separator": leftOut, "field-context-separator": leftOut, "field-match-separator": leftOut, "hyperlink-format": leftOut, "include-zero": leftOut,
	"binary": "binary files are left out, or searched as text with -a", "crlf": "line ends of both kinds are recognised by themselves", "block-buffered": leftOut,
	"dfa-size-limit": "the engine has limits of its own", "regex-size-limit": "the engine has limits of its own", "glob-case-insensitive": "use --iglob", "ignore-file-case-insensitive": leftOut,
	"no-ignore-dot": "use --no-ignore", "no-ignore-exclude": "use --no-ignore", "no-ignore-files": "use --no-ignore", "no-ignore-global": "use --no-ignore", "no-ignore-parent": "use --no-ignore",
	"sort-files": "use --sort path", "stop-on-nonmatch": leftOut, "pcre2-version": "the engine is RE2", "no-ignore-messages": leftOut,
}

const leftOut = "it is one of those that this tool leaves out"

var shortReasons = map[byte]string{'f': "file", 'L': "follow", 'z': "search-zip", 'P': "pcre2", 'E': "encoding", '0': "null", 'b': "byte-offset", 'V': "version", 'h': "help"}

// parseRG reads ripgrep's command line.
func parseRG(args []string) (*rgCommand, error) {
	c := &rgCommand{}
	byLong, byShort := make(map[string]flag), make(map[byte]flag)
	for _, f := range flags() {
		byLong[f.long] = f
		if f.short != 0 {
			byShort[f.short] = f
		}
	}
	if len(args) == 1 && strings.HasPrefix(args[0], "-") && strings.Contains(args[0], " ") {
		return nil, fmt.Errorf(`args is a list with one element a word, such as ["-n", "pattern", "folder"], and not a whole command line`)
	}
	var free []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		take := func(name string) (string, error) {
			if i+1 == len(args) {
				return "", fmt.Errorf("the flag %s needs a value", name)
			}
			i++
			return args[i], nil
		}
		var err error
		switch {
		case arg == "--":
			free = append(free, args[i+1:]...)
			i = len(args)
		case strings.HasPrefix(arg, "--"):
			err = c.long(byLong, arg, take)
		case len(arg) > 1 && arg[0] == '-':
			err = c.short(byShort, arg, take)
		default:
			free = append(free, arg)
		}
		if err != nil {
			return nil, err
		}
	}
	if !c.patterns && c.mode != listFiles && !c.typeList {
		if len(free) == 0 {
			return nil, fmt.Errorf("args has no pattern: give it as the first argument that is no flag, or with -e")
		}
		c.exprs, free = free[:1], free[1:]
	}
	c.paths = free
	if c.smart {
		c.ignoreCase = !hasUpper(strings.Join(c.exprs, ""))
	}
	return c, nil
}

func (c *rgCommand) long(known map[string]flag, arg string, take func(string) (string, error)) error {
	name, v, given := strings.Cut(arg[2:], "=")
	f, ok := known[name]
	if !ok {
		return unknown("--"+name, reasons[name])
	}
	if f.value && !given {
		var err error
		if v, err = take("--" + name); err != nil {
			return err
		}
	}
	if !f.value && given {
		return fmt.Errorf("the flag --%s takes no value", name)
	}
	return badValue("--"+name, f.set(c, v))
}

func (c *rgCommand) short(known map[byte]flag, arg string, take func(string) (string, error)) error {
	for j := 1; j < len(arg); j++ {
		f, ok := known[arg[j]]
		name := "-" + arg[j:j+1]
		if !ok {
			return unknown(name, reasons[shortReasons[arg[j]]])
		}
		if !f.value {
			if err := f.set(c, ""); err != nil {
				return err
			}
			continue
		}
		v := strings.TrimPrefix(arg[j+1:], "=")
		if v == "" {
			var err error
			if v, err = take(name); err != nil {
				return err
			}
		}
		return badValue(name, f.set(c, v))
	}
	return nil
}

func unknown(name, why string) error {
	if why != "" {
		return fmt.Errorf("the flag %s is not done here: %s", name, why)
	}
	return fmt.Errorf("neither ripgrep nor this tool has a flag %s; a pattern that begins with a dash goes after -e or --", name)
}

func badValue(name string, err error) error {
	if err != nil {
		return fmt.Errorf("the flag %s: %w", name, err)
	}
	return nil
}
