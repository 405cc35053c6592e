package policy

import (
	"slices"
	"strings"
)

// piping notes code that an interpreter gets through a pipe.
func (w *walker) piping(at int, words []word) {
	if !w.piped || len(words) > 1 && words[1].text != "-" {
		return
	}
	w.risk("pipes into an interpreter")
	if w.sup == nil || !w.sup.input.known {
		w.unclear("it runs code that arrives through a pipe")
	}
	w.cmd.Segments[at].mark(-1, "it runs code that arrives through a pipe")
}

// textOption finds the command line that a program takes as the value of -c.
func (w *walker) textOption(at int, name string, words []word) {
	if wr := wrappers[name]; wr != nil {
		w.wrapped(at, wr, words)
	} else {
		w.risk("runs a command through " + name)
	}
	for i, x := range words[1:] {
		long, text, _ := strings.Cut(x.text, "=")
		switch {
		case (long == "--command" || long == "--session-command") && text != "":
			w.code(at, []word{{text: text, dynamic: x.dynamic}})
		case long == "--command", long == "--session-command", strings.HasPrefix(x.text, "-") && !strings.HasPrefix(x.text, "--") && strings.HasSuffix(x.text, "c"):
			if i+2 < len(words) {
				w.code(at, words[i+2:i+3])
			}
		case strings.HasPrefix(x.text, "-c") && strings.Contains(x.text, " "):
			w.code(at, []word{{text: x.text[2:], dynamic: x.dynamic}})
		}
	}
}

// foreign applies the critical list to what cmd and PowerShell are given. Their
// languages are not parsed: it is looked at piece by piece.
func (w *walker) foreign(words []word) {
	from := slices.IndexFunc(words, func(x word) bool {
		t := strings.ToLower(x.text)
		return t == "/c" || t == "/k" || len(t) > 1 && strings.HasPrefix("-command", t)
	})
	if from < 0 {
		return
	}
	text := joinWords(words[from+1:])
	for _, piece := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(";|&{}()\r\n", r) }) {
		var list []word
		for _, f := range strings.Fields(piece) {
			f = strings.Trim(f, `"'`)
			list = append(list, word{text: f, glob: strings.ContainsAny(f, "*?")})
		}
		if len(list) > 0 {
			if why := critical(list, w.dirs); why != "" {
				w.critical(why)
			}
		}
	}
}
