package policy

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// wrapper is a program whose arguments are another command.
type wrapper struct {
	valued   string   // short options that take a value
	long     []string // long options that take the next word as a value
	operands int      // words before the command
	assigns  bool     // NAME=value words before the command
	open     bool     // appends words that are not known
	folder   string   // the short option that names the folder to run in; the long one is --chdir
	here     bool     // runs builtins in this very shell
	string   bool     // joins its words and gives them to a shell
	risk     string
}

var wrappers = map[string]*wrapper{
	"env":      {valued: "uCS", long: []string{"--unset", "--chdir", "--split-string"}, assigns: true, folder: "C"},
	"nohup":    {},
	"setsid":   {},
	"timeout":  {valued: "ks", long: []string{"--kill-after", "--signal"}, operands: 1},
	"gtimeout": {valued: "ks", long: []string{"--kill-after", "--signal"}, operands: 1},
	"nice":     {valued: "n", long: []string{"--adjustment"}},
	"ionice":   {valued: "cnp", long: []string{"--class", "--classdata"}},
	"chrt":     {valued: "TPD", operands: 1},
	"taskset":  {operands: 1},
	"time":     {valued: "fo", long: []string{"--format", "--output"}},
	"stdbuf":   {valued: "ioe", long: []string{"--input", "--output", "--error"}},
	"unbuffer": {}, "chronic": {}, "caffeinate": {valued: "tw"}, "catchsegv": {},
	"command": {here: true}, "builtin": {here: true}, "exec": {valued: "a"}, "coproc": {},
	"busybox": {}, "toybox": {}, "doas": {valued: "uC", risk: "runs as another user"},
	"sudo":     {valued: "ughpCTrtDR", long: []string{"--user", "--group", "--host", "--prompt", "--chdir", "--chroot"}, assigns: true, folder: "D", risk: "runs as another user"},
	"pkexec":   {long: []string{"--user"}, risk: "runs as another user"},
	"xargs":    {valued: "InPLdEsa", long: []string{"--replace", "--max-args", "--max-procs", "--max-lines", "--delimiter", "--arg-file", "--max-chars", "--eof"}, open: true},
	"parallel": {valued: "jISNa", open: true},
	"chroot":   {operands: 1, risk: "changes the root folder"},
	"unshare":  {valued: "SG", risk: "changes namespaces"},
	"nsenter":  {valued: "tSG", risk: "enters other namespaces"},
	"strace":   {valued: "eopsuEaOSPbI"}, "ltrace": {valued: "eopsuaFl"}, "gdb": {},
	"flock": {valued: "wEc", operands: 1},
	"watch": {valued: "n", long: []string{"--interval"}, string: true},
	"entr":  {}, "firejail": {}, "bwrap": {}, "systemd-run": {valued: "pEu", risk: "starts a service"},
	"start-stop-daemon": {}, "runuser": {valued: "ugG", risk: "runs as another user"}, "setpriv": {}, "capsh": {},
}

var shells = map[string]bool{"sh": true, "bash": true, "dash": true, "zsh": true, "ksh": true, "mksh": true, "ash": true, "fish": true, "rbash": true}

// interpreters run code from standard input when they are given no file.
var interpreters = map[string]bool{"python": true, "python2": true, "python3": true, "perl": true, "ruby": true, "node": true, "php": true, "lua": true, "pwsh": true, "powershell": true, "deno": true, "bun": true, "osascript": true, "cmd": true}

// subcommands are programs whose first word says what they do.
var subcommands = map[string]bool{"git": true, "go": true, "cargo": true, "npm": true, "pnpm": true, "yarn": true, "docker": true, "kubectl": true, "make": true, "pip": true, "uv": true, "gh": true, "apt": true, "apt-get": true, "brew": true, "systemctl": true, "terraform": true, "dotnet": true, "mvn": true, "gradle": true, "elfhost": true}

// runs finds the command inside the arguments of segment at.
func (w *walker) runs(at int, words []word, redirs []*syntax.Redirect) {
	name := program(words[0].text)
	via := w.via
	defer func() { w.via = via }()
	w.via = name
	switch {
	case words[0].dynamic:
	case shells[name]:
		w.shell(at, words, redirs)
	case name == "eval":
		w.code(at, words[1:])
	case name == "su", name == "script", name == "runuser", name == "flock":
		w.textOption(at, name, words)
	case name == "source", name == ".":
		w.shell(at, words[:min(len(words), 2)], redirs)
	case name == "alias":
		for _, x := range words[1:] {
			if _, text, ok := strings.Cut(x.text, "="); ok && w.sup != nil {
				w.code(at, []word{{text: text, dynamic: x.dynamic}})
			}
		}
	case strings.EqualFold(name, "cmd"), strings.EqualFold(name, "powershell"), name == "pwsh":
		w.foreign(words)
		w.piping(at, words)
	case name == "find":
		w.find(words)
	case name == "trap":
		if len(words) > 2 {
			w.code(at, words[1:2])
		}
	case wrappers[name] != nil:
		w.wrapped(at, wrappers[name], words)
	case interpreters[name]:
		w.piping(at, words)
	}
}

// wrapped skips a wrapper's own options.
func (w *walker) wrapped(at int, wr *wrapper, words []word) {
	g := &w.cmd.Segments[at]
	g.wraps = true
	if wr.risk != "" {
		w.risk(wr.risk)
	}
	rest, operands := words[1:], wr.operands
	var into []word // cd and the folder, if an option names one
	for len(rest) > 0 {
		t := rest[0].text
		switch {
		case t == "--":
			if rest = rest[1:]; operands > 0 {
				rest, operands = rest[min(operands, len(rest)):], 0
			}
			if len(rest) > 0 {
				w.inner(at, wr, rest, into)
			}
			return
		case wr.assigns && strings.HasPrefix(t, "-S"), wr.assigns && strings.HasPrefix(t, "--split-string"):
			w.cmd.Segments[at].mark(-1, "env splits a text into a command")
			text := strings.TrimPrefix(strings.TrimPrefix(t, "--split-string"), "-S")
			if text = strings.TrimPrefix(text, "="); text == "" && len(rest) > 1 {
				rest = rest[1:]
				text = rest[0].text
			}
			w.code(at, append([]word{{text: text, dynamic: rest[0].dynamic}}, rest[1:]...))
			return
		case strings.HasPrefix(t, "-") && len(t) > 1:
			if d, ok := wr.startsIn(rest); ok {
				into = []word{{text: "cd"}, d}
			}
			if wr.here && t != "-p" { // command -v only says what would run
				wr = &wrapper{}
			}
			if takesValue(wr, t) && len(rest) > 1 {
				rest = rest[1:]
			}
			rest = rest[1:]
		case wr.assigns && strings.Contains(t, "="):
			name, _, _ := strings.Cut(t, "=")
			if !quietVars[name] && !strings.HasPrefix(name, "LC_") {
				w.cmd.Segments[at].mark(-1, "it sets the variable %s", name)
			}
			rest = rest[1:]
		case operands > 0:
			operands--
			rest = rest[1:]
		default:
			w.inner(at, wr, rest, into)
			return
		}
	}
}

// startsIn is the folder that the option at the front of the words names.
func (wr *wrapper) startsIn(words []word) (word, bool) {
	if wr.folder == "" {
		return word{}, false
	}
	t := words[0].text
	value, attached := strings.CutPrefix(t, "--chdir=")
	if !attached && !strings.HasPrefix(t, "--") {
		if i := strings.Index(t, wr.folder); i > 0 {
			value, attached = t[i+1:], i+1 < len(t)
			t = "--chdir"
		}
	}
	switch {
	case attached:
		return word{text: value, dynamic: words[0].dynamic}, true
	case t == "--chdir" && len(words) > 1:
		return words[1], true
	}
	return word{}, false
}

func takesValue(wr *wrapper, t string) bool {
	if strings.HasPrefix(t, "--") {
		return slices.Contains(wr.long, t)
	}
	i := strings.IndexAny(t[1:], wr.valued)
	return wr.valued != "" && i >= 0 && i == len(t)-2
}

func (w *walker) inner(at int, wr *wrapper, words, into []word) {
	if wr.string {
		w.code(at, words)
		return
	}
	if w.depth >= maxDepth+16 {
		w.err = errNested
		return
	}
	var g Segment
	if wr.open {
		g.Dynamic = true
		g.mark(-1, "it gets arguments that are known only when it runs")
		words = w.handedTo(words)
	}
	w.depth++
	if wr.here {
		w.argv(g, slices.Clone(words), nil)
	} else {
		w.apart(func() {
			if into != nil {
				w.moves(into)
			}
			w.argv(g, slices.Clone(words), nil)
		})
	}
	w.depth--
}

// shell handles sh and its kin: -c text, a here-document, a pipe.
func (w *walker) shell(at int, words []word, redirs []*syntax.Redirect) {
	w.cmd.Segments[at].wraps = true
	for i := 1; i < len(words); i++ {
		t := words[i].text
		switch {
		case strings.HasPrefix(t, "-") && !strings.HasPrefix(t, "--") && strings.Contains(t, "c"):
			for i++; i < len(words) && (strings.HasPrefix(words[i].text, "-") || strings.HasPrefix(words[i].text, "+")); i++ {
			}
			if i < len(words) {
				w.keep(func() {
					w.positional(words[min(i+2, len(words)):])
					w.code(at, words[i:i+1])
				})
			}
			return
		case t == "-o", t == "+o", t == "-O", t == "+O", t == "--rcfile", t == "--init-file":
			i++
		case t == "-s":
		case strings.HasPrefix(t, "-") && t != "-", strings.HasPrefix(t, "+"):
		case t == "-" || t == "/dev/stdin":
		case substituted(t):
			w.arrives(at)
			return
		default:
			return // a file
		}
	}
	for _, r := range redirs {
		switch r.Op {
		case syntax.RdrIn:
			if substituted(w.word(r.Word).text) {
				w.arrives(at)
			}
			return
		case syntax.Hdoc, syntax.DashHdoc:
			w.code(at, []word{w.word(r.Hdoc)})
			return
		case syntax.WordHdoc:
			w.code(at, []word{w.word(r.Word)})
			return
		}
	}
	if w.piped {
		w.risk("pipes into a shell")
		w.cmd.Segments[at].mark(-1, "it pipes into a shell")
		if w.sup != nil && w.sup.input.known {
			w.code(at, []word{{text: w.sup.input.text}})
			return
		}
		w.unclear("it pipes into a shell what is known only when it runs")
	}
}

// substituted reports <(…), the output of a command as a file.
func substituted(written string) bool { return strings.HasPrefix(written, "<(") }

func (w *walker) arrives(at int) {
	w.risk("pipes into a shell")
	w.cmd.Segments[at].mark(-1, "it runs what another command prints")
	w.unclear("it gives a shell what is known only when it runs")
}

// code parses text that a shell will run.
func (w *walker) code(at int, words []word) {
	texts := make([]string, len(words))
	for i, x := range words {
		texts[i] = x.text
		if x.dynamic {
			w.cmd.Segments[at].mark(-1, "it runs code that is known only when it runs")
			w.unclear("it runs code that is known only when it runs")
			return
		}
	}
	src := strings.Join(texts, " ")
	if strings.TrimSpace(src) == "" {
		return
	}
	if err := preflight(src); err != nil {
		w.err = err
		return
	}
	w.apart(func() {
		if err := w.parse(src); err != nil && w.err == nil {
			w.err = err
		}
	})
}

// find runs what follows -exec and its kin, up to ";" or "+".
func (w *walker) find(words []word) {
	if w.sup != nil {
		before := w.sup.input
		defer func() { w.sup.input = before }()
		w.sup.input = w.finds(words)
	}
	for i := 1; i < len(words); i++ {
		switch words[i].text {
		case "-exec", "-execdir", "-ok", "-okdir":
			j := i + 1
			for j < len(words) && words[j].text != ";" && words[j].text != "+" {
				j++
			}
			if j > i+1 {
				w.inner(0, &wrapper{open: true}, words[i+1:j], nil)
			}
			i = j
		}
	}
}
