package outline

import (
	"bytes"
	"strconv"
	"strings"
)

// markdown finds the headings of a CommonMark document: ATX and setext, those
// of the document itself, not of quotes and list items. A heading reaches to
// the line before the next one that is not below it. Text in fences, HTML
// blocks, indented code and front matter is none.
func markdown(src []byte) []Symbol {
	m := &mdParser{}
	no := 0
	lines := bytes.Split(bytes.TrimSuffix(src, []byte("\n")), []byte("\n"))
	if n := frontMatter(lines); n > 0 {
		no, lines = n, lines[n:]
	}
	for _, l := range lines {
		no++
		m.line(no, expand(bytes.TrimSuffix(l, []byte("\r"))))
	}
	m.close(no, 0)
	return m.out
}

// frontMatter is how many lines of YAML or TOML a document begins with.
func frontMatter(lines [][]byte) int {
	if len(lines) == 0 {
		return 0
	}
	mark := strings.TrimRight(string(bytes.TrimPrefix(lines[0], []byte("\uFEFF"))), " \t\r")
	if mark != "---" && mark != "+++" {
		return 0
	}
	for i, l := range lines[1:] {
		if t := strings.TrimRight(string(l), " \t\r"); t == mark || mark == "---" && t == "..." {
			return i + 2
		}
	}
	return 0
}

// mdParser is the state between two lines.
type mdParser struct {
	out  []Symbol
	open []int // indexes of the headings that reach here, outermost first

	items  []int // the indentation of the content of each list item that is open
	fence  fence
	html   string // what ends the HTML block; "\x00" for an empty line; "": none
	para   []string
	at     int // line of the paragraph's start
	within int // list items around it
}

type fence struct {
	mark byte // 0: none
	n    int
	in   int // list items around it
}

func (m *mdParser) line(no int, l string) {
	depth, rest := m.enter(l)
	blank := strings.TrimSpace(rest) == ""
	if m.fence.mark != 0 {
		if depth < m.fence.in && !blank { // its list item has ended
			m.fence = fence{}
		} else {
			if closes(rest, m.fence) {
				m.fence = fence{}
			}
			return
		}
	}
	if m.html != "" {
		if m.html == "\x00" && blank || m.html != "\x00" && strings.Contains(strings.ToLower(rest), m.html) {
			m.html = ""
		}
		return
	}
	if blank {
		m.para = nil
		return
	}
	if m.para != nil && depth < len(m.items) && plain(rest) { // goes on lazily, outside its item
		m.para = append(m.para[:min(len(m.para), maxText)], strings.TrimSpace(rest))
		return
	}
	m.items = m.items[:depth]
	m.block(no, rest)
}

// plain reports whether a line can only go on with a paragraph.
func plain(l string) bool {
	t := strings.TrimSpace(l)
	level, _ := atx(t)
	return indent(l) >= 4 || level == 0 && opens(t).mark == 0 && t[0] != '>' && !thematic(t) && htmlBlock(t, true) == "" && bullet(l, true) == 0
}

// enter counts the open list items that a line goes on in.
func (m *mdParser) enter(l string) (depth int, rest string) {
	if strings.TrimSpace(l) == "" {
		return len(m.items), ""
	}
	for _, in := range m.items {
		if indent(l) < in {
			break
		}
		l = l[in:]
		depth++
	}
	return depth, l
}

// block looks at a line that begins or goes on with something.
func (m *mdParser) block(no int, l string) {
	nested := len(m.items) > 0
	if indent(l) >= 4 {
		if m.para != nil {
			m.para = append(m.para, strings.TrimSpace(l)) // a paragraph goes on, however indented
		}
		return
	}
	t := strings.TrimSpace(l)
	if level := setext(t); level > 0 && m.para != nil && !nested && m.within == 0 {
		m.heading(level, strings.Join(m.para, " "), m.at, no)
		m.para = nil
		return
	}
	if level, text := atx(t); level > 0 {
		m.para = nil
		if !nested {
			m.heading(level, text, no, no)
		}
		return
	}
	if f := opens(t); f.mark != 0 {
		m.para = nil
		f.in = len(m.items)
		m.fence = f
		return
	}
	if end := htmlBlock(t, m.para != nil); end != "" {
		m.para = nil
		if end == "\x00" || !strings.Contains(strings.ToLower(t), end) {
			m.html = end
		}
		return
	}
	switch {
	case t[0] == '>', thematic(t):
		m.para = nil
	default:
		if w := bullet(l, m.para != nil); w > 0 {
			m.para = nil
			if len(m.items) < maxDepth {
				m.items = append(m.items, w)
				if rest := l[min(w, len(l)):]; strings.TrimSpace(rest) != "" {
					m.block(no, rest)
				}
			}
			return
		}
		if m.para == nil {
			m.at, m.within = no, len(m.items)
		}
		m.para = append(m.para, t)
		if len(m.para) > maxText { // no heading: do not keep a whole book
			m.para = m.para[:maxText]
		}
	}
}

func (m *mdParser) heading(level int, text string, first, last int) {
	m.close(first-1, level)
	m.open = append(m.open, len(m.out))
	m.out = append(m.out, Symbol{Label: "h" + strconv.Itoa(level), Name: line(text), First: first, Last: last, Depth: len(m.open) - 1})
}

// close ends the sections of a level and below.
func (m *mdParser) close(last, level int) {
	for i := len(m.open) - 1; i >= 0; i-- {
		s := &m.out[m.open[i]]
		if int(s.Label[1]-'0') < level {
			return
		}
		s.Last = max(s.Last, last)
		m.open = m.open[:i]
	}
}

func indent(l string) int { return len(l) - len(strings.TrimLeft(l, " ")) }

// expand puts spaces in place of the tabs that a line begins with.
func expand(b []byte) string {
	l := string(b)
	n := 0
	for n < len(l) && (l[n] == ' ' || l[n] == '\t') {
		n++
	}
	if strings.IndexByte(l[:n], '\t') < 0 {
		return l
	}
	col := 0
	for _, c := range l[:n] {
		col++
		if c == '\t' {
			col = (col + 3) &^ 3
		}
	}
	return strings.Repeat(" ", min(col, 4*maxDepth)) + l[n:]
}

// atx reads "## text ##".
func atx(t string) (level int, text string) {
	for level < len(t) && t[level] == '#' {
		level++
	}
	if level == 0 || level > 6 || level < len(t) && t[level] != ' ' && t[level] != '\t' {
		return 0, ""
	}
	text = strings.TrimSpace(t[level:])
	if bare := strings.TrimRight(text, "#"); bare == "" || strings.HasSuffix(bare, " ") || strings.HasSuffix(bare, "\t") {
		text = strings.TrimSpace(bare)
	}
	return level, text
}

// setext is the level that an underline gives.
func setext(t string) int {
	switch {
	case strings.Trim(t, "=") == "":
		return 1
	case strings.Trim(t, "-") == "":
		return 2
	}
	return 0
}

func thematic(t string) bool {
	if t[0] != '*' && t[0] != '-' && t[0] != '_' {
		return false
	}
	bare := strings.NewReplacer(" ", "", "\t", "").Replace(t)
	return len(bare) >= 3 && strings.Trim(bare, t[:1]) == ""
}

func opens(t string) fence {
	c := t[0]
	if c != '`' && c != '~' {
		return fence{}
	}
	n := len(t) - len(strings.TrimLeft(t, t[:1]))
	if n < 3 || c == '`' && strings.IndexByte(t[n:], '`') >= 0 {
		return fence{}
	}
	return fence{mark: c, n: n}
}

func closes(l string, f fence) bool {
	t := strings.TrimSpace(l)
	return indent(l) < 4 && len(t) >= f.n && strings.Trim(t, string(f.mark)) == ""
}

// bullet is how far the content of a list item is indented, 0 for no item.
func bullet(l string, inParagraph bool) int {
	i := indent(l)
	digits := i
	for digits < len(l) && digits-i < 9 && l[digits] >= '0' && l[digits] <= '9' {
		digits++
	}
	w := 0
	switch {
	case digits > i && digits < len(l) && (l[digits] == '.' || l[digits] == ')'):
		if inParagraph && l[i:digits] != "1" {
			return 0
		}
		w = digits + 1
	case digits == i && strings.IndexByte("-+*", l[i]) >= 0:
		w = i + 1
	default:
		return 0
	}
	rest := l[w:]
	switch n := len(rest) - len(strings.TrimLeft(rest, " \t")); {
	case strings.TrimSpace(rest) == "":
		if inParagraph {
			return 0
		}
		return w + 1
	case n == 0:
		return 0
	case n > 4:
		return w + 1
	default:
		return w + n
	}
}

// htmlBlock says what ends an HTML block that begins here.
func htmlBlock(t string, inParagraph bool) string {
	if t[0] != '<' {
		return ""
	}
	low := strings.ToLower(t)
	for _, tag := range []string{"script", "pre", "style", "textarea"} {
		if rest, ok := strings.CutPrefix(low, "<"+tag); ok && (rest == "" || strings.IndexByte(" \t>", rest[0]) >= 0) {
			return "</" + tag + ">"
		}
	}
	switch {
	case strings.HasPrefix(low, "<!--"):
		return "-->"
	case strings.HasPrefix(low, "<?"):
		return "?>"
	case strings.HasPrefix(low, "<![cdata["):
		return "]]>"
	case len(low) > 2 && low[1] == '!' && low[2] >= 'a' && low[2] <= 'z':
		return ">"
	}
	tagEnd := strings.IndexAny(low, " \t>")
	if tagEnd < 0 {
		tagEnd = len(low)
	}
	tag := strings.Trim(low[:tagEnd], "</")
	if blockTags[tag] {
		return "\x00"
	}
	// Any other tag, alone on its line, outside a paragraph.
	if !inParagraph && len(low) > 2 && low[len(low)-1] == '>' && strings.Count(low, "<") == 1 && strings.IndexByte(low, ':') < 0 {
		return "\x00"
	}
	return ""
}

// blockTags are the tags of CommonMark's sixth kind of HTML block.
var blockTags = func() map[string]bool {
	m := map[string]bool{}
	for _, t := range strings.Fields(`address article aside base basefont blockquote body caption center col colgroup dd details dialog
		dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hr html iframe legend li link
		main menu menuitem nav noframes ol optgroup option p param search section summary table tbody td tfoot th thead title tr track ul`) {
		m[t] = true
	}
	return m
}()
