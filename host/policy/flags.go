package policy

import (
	"regexp"
	"slices"
	"strings"
)

// flagRule lists options by which a harmless program runs another, or writes.
type flagRule struct {
	short string   // letters, found in clusters too
	long  []string // "--output", or "-exec" for programs with such options
	why   string
}

const (
	whyRuns   = "%s lets %s run another program"
	whyWrites = "%s lets %s write or delete files"
)

var flagRules = map[string][]flagRule{
	"find": {{long: []string{"-exec", "-execdir", "-ok", "-okdir"}, why: whyRuns}, {long: []string{"-delete", "-fprint", "-fprint0", "-fprintf", "-fls"}, why: whyWrites}},
	"fd":   {{short: "xX", long: []string{"--exec", "--exec-batch"}, why: whyRuns}},
	"git": {
		{long: []string{"--config-env", "--exec-path", "--open-files-in-pager", "--ext-diff", "--textconv", "--upload-pack", "--receive-pack", "--exec", "--git-dir", "--work-tree", "--template", "--gpg-sign", "--paginate"}, why: whyRuns},
		{long: []string{"--output", "--output-directory"}, why: whyWrites},
	},
	"tar":     {{short: "IF", long: []string{"--checkpoint-action", "--to-command", "--use-compress-program", "--info-script", "--new-volume-script", "--rsh-command", "--rmt-command"}, why: whyRuns}},
	"sort":    {{short: "o", long: []string{"--output"}, why: whyWrites}, {long: []string{"--compress-program"}, why: whyRuns}},
	"sed":     {{short: "i", long: []string{"--in-place"}, why: whyWrites}, {short: "f", long: []string{"--file"}, why: whyRuns}},
	"awk":     {{short: "fiEl", long: []string{"--file", "--include", "--exec", "--load"}, why: whyRuns}},
	"rg":      {{long: []string{"--pre", "--hostname-bin"}, why: whyRuns}},
	"ag":      {{long: []string{"--pager"}, why: whyRuns}},
	"bat":     {{long: []string{"--pager"}, why: whyRuns}},
	"man":     {{short: "PHC", long: []string{"--pager", "--html", "--config-file"}, why: whyRuns}},
	"less":    {{short: "oO", long: []string{"--log-file"}, why: whyWrites}},
	"ssh":     {{short: "oF", why: whyRuns}},
	"scp":     {{short: "oFS", why: whyRuns}},
	"rsync":   {{short: "e", long: []string{"--rsh", "--rsync-path"}, why: whyRuns}, {long: []string{"--delete", "--remove-source-files"}, why: whyWrites}},
	"curl":    {{short: "oOKTDc", long: []string{"--output", "--remote-name", "--config", "--upload-file", "--dump-header", "--cookie-jar", "--output-dir", "--trace"}, why: whyWrites}},
	"wget":    {{long: []string{"--execute", "--use-askpass", "--post-file", "--body-file"}, short: "e", why: whyRuns}},
	"zip":     {{long: []string{"-TT", "--unzip-command"}, why: whyRuns}},
	"split":   {{long: []string{"--filter"}, why: whyRuns}},
	"go":      {{long: []string{"-exec", "-toolexec", "-vettool", "-overlay", "-modfile", "-ldflags", "-gcflags", "-gccgoflags", "--exec", "--toolexec"}, why: whyRuns}},
	"tree":    {{short: "o", why: whyWrites}},
	"yq":      {{short: "i", long: []string{"--inplace"}, why: whyWrites}},
	"perl":    {{short: "i", why: whyWrites}},
	"date":    {{short: "s", long: []string{"--set"}, why: "%s lets %s set the clock"}},
	"tcpdump": {{short: "zw", why: whyRuns}},
	"file":    {{short: "C", why: whyWrites}},
	"make":    {{long: []string{"--eval"}, short: "E", why: whyRuns}},
	"gcc":     {{long: []string{"-wrapper", "-fplugin"}, short: "B", why: whyRuns}},
	"diff":    {{long: []string{"--to-file"}, why: whyRuns}},
}

// aliases of the programs above.
var flagAlias = map[string]string{"gawk": "awk", "mawk": "awk", "nawk": "awk", "gsed": "sed", "gtar": "tar", "bsdtar": "tar", "gfind": "find", "fdfind": "fd", "gsort": "sort", "ripgrep": "rg", "sftp": "scp", "cc": "gcc", "clang": "gcc", "g++": "gcc"}

// builtinMarks are shell builtins that change what later words mean, or run code.
var builtinMarks = map[string]string{
	"eval": "it runs a text as code", "source": "it runs a file as code", ".": "it runs a file as code", "exec": "it replaces the shell",
	"alias": "it gives commands other meanings", "unalias": "it gives commands other meanings", "trap": "it runs code later", "enable": "it changes the shell's builtins",
	"hash": "it changes where programs are found", "set": "it changes how the shell reads commands", "shopt": "it changes how the shell reads commands", "bind": "it runs code later",
	"complete": "it runs code later", "compgen": "it may run code", "jobs": "it may run code", "fc": "it may run code", "pushd": "it changes the folder", "popd": "it changes the folder", "mapfile": "it may run code", "readarray": "it may run code", "unset": "it changes variables for what follows",
	"read": "it sets variables for what follows", "printf -v": "it sets variables for what follows",
}

var risks = map[string]string{
	"chmod": "changes permissions", "chown": "changes permissions", "chgrp": "changes permissions", "setfacl": "changes permissions", "chattr": "changes permissions", "icacls": "changes permissions", "takeown": "changes permissions",
	"su": "runs as another user", "crontab": "runs later", "at": "runs later", "systemctl": "changes services", "service": "changes services", "launchctl": "changes services",
	"mount": "changes mounts", "umount": "changes mounts", "iptables": "changes the firewall", "nft": "changes the firewall", "ufw": "changes the firewall",
	"kill": "ends processes", "pkill": "ends processes", "killall": "ends processes", "fdisk": "changes disks", "parted": "changes disks", "dd": "writes raw data", "shred": "destroys data",
	"useradd": "changes accounts", "usermod": "changes accounts", "passwd": "changes accounts", "insmod": "changes the kernel", "modprobe": "changes the kernel", "sysctl": "changes the kernel",
	"nc": "opens network connections", "ncat": "opens network connections", "socat": "opens network connections", "ssh": "runs on another machine",
}

// judge marks one simple command by the tables.
func (w *walker) judge(g *Segment, words []word) {
	if why := critical(words, w.dirs); why != "" && !words[0].dynamic {
		w.critical(why)
	}
	name := program(words[0].text)
	if why := builtinMarks[words[0].text]; why != "" {
		g.mark(-1, "%s", why)
	}
	if r := risks[name]; r != "" {
		w.risk(r)
	}
	args := g.Argv[1:]
	if name == "rm" && hasFlag(args, "rR", "--recursive") {
		w.risk("deletes folders")
	}
	if strings.ContainsAny(words[0].text, `/\`) && !strings.HasPrefix(words[0].text, "/") {
		w.risk("runs a program of the workspace")
	}
	key := name
	if a := flagAlias[name]; a != "" {
		key = a
	}
	for _, r := range flagRules[key] {
		for from := 0; from < len(args); {
			i := flagAt(args[from:], r.short, r.long...)
			if i < 0 {
				break
			}
			at := from + i + 1
			from += i + 1
			g.mark(at, r.why, quoteClip(g.Argv[at]), name)
		}
	}
	switch key {
	case "git":
		w.git(g, args)
	case "sed":
		markScript(g, args, "eE", safeSed)
	case "awk":
		markScript(g, args, "Fv", safeAwk)
	case "tar":
		if len(args) > 0 && !strings.HasPrefix(args[0], "-") && strings.ContainsAny(args[0], "IF") && !strings.ContainsAny(args[0], "./") {
			g.mark(1, whyRuns, args[0], name)
		}
	case "tee", "touch", "truncate", "mkdir", "ln", "install":
		for i, a := range args {
			if !strings.HasPrefix(a, "-") && !g.dyn[i+1] && name == "tee" {
				g.Writes = append(g.Writes, a)
			}
		}
	case "printf":
		if len(args) > 0 && strings.HasPrefix(args[0], "-v") {
			g.mark(-1, "%s", builtinMarks["printf -v"])
		}
	case "test", "[":
		if slices.Contains(args, "-v") {
			g.mark(-1, "a test of a variable may evaluate its subscript as code")
		}
	}
}

// git marks subcommands that run what the repository or the arguments name.
func (w *walker) git(g *Segment, args []string) {
	at := 0
	for at < len(args) && strings.HasPrefix(args[at], "-") {
		if strings.HasPrefix(args[at], "-c") {
			g.mark(at+1, whyRuns, quoteClip(args[at]), "git")
		}
		if args[at] == "-C" || args[at] == "-c" {
			at++
		}
		at++
	}
	if at >= len(args) {
		return
	}
	rest := args[at+1:]
	switch args[at] {
	case "config":
		if !hasFlag(rest, "l", "--list", "--get", "--get-all", "--get-regexp") {
			g.mark(-1, "it changes git's configuration, which names programs")
		}
	case "filter-branch", "difftool", "mergetool", "daemon", "instaweb", "credential", "shell", "remote-ext":
		g.mark(at+1, whyRuns, quoteClip(args[at]), "git")
	case "bisect", "submodule":
		if slices.Contains(rest, "run") || slices.Contains(rest, "foreach") {
			g.mark(-1, "it runs another program for git %s", args[at])
		}
	case "rebase":
		if i := flagAt(rest, "x"); i >= 0 {
			g.mark(at+2+i, whyRuns, quoteClip(rest[i]), "git")
		}
	case "push":
		if hasFlag(rest, "f", "--force", "--mirror", "--delete") || slices.ContainsFunc(rest, func(s string) bool { return strings.HasPrefix(s, "+") }) {
			w.risk("overwrites history on a server")
		}
	case "reset", "clean", "checkout", "restore":
		if hasFlag(rest, "f", "--hard", "--force") || args[at] == "restore" {
			w.risk("discards changes")
		}
	case "archive":
		if i := flagAt(rest, "o"); i >= 0 {
			g.mark(at+2+i, whyWrites, quoteClip(rest[i]), "git")
		}
	case "format-patch":
		g.mark(-1, "it writes files")
	}
	for i, a := range rest {
		if strings.HasPrefix(a, "-O") || strings.HasPrefix(a, "ext::") || strings.HasPrefix(a, "fd::") {
			g.mark(at+2+i, whyRuns, quoteClip(a), "git")
		}
	}
}

// markScript marks the program text of sed or awk unless it is one of the
// plain forms: both can run commands and write files from it.
func markScript(g *Segment, args []string, valued string, safe func(string) bool) {
	given := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case valued == "eE" && (a == "-e" || a == "--expression") && i+1 < len(args):
			i++
			given = true
			if !safe(args[i]) {
				g.mark(i+1, "its script may run commands or write files")
			}
		case valued == "eE" && strings.HasPrefix(a, "-") && len(a) > 1 && (strings.Contains(a, "e") || strings.HasPrefix(a, "--expression")):
			given = true
			g.mark(i+1, "its script may run commands or write files")
		case valued == "Fv" && (a == "-F" || a == "-v") && i+1 < len(args):
			i++
		case strings.HasPrefix(a, "-") && len(a) > 1:
		case !given:
			given = true
			if !safe(a) {
				g.mark(i+1, "its script may run commands or write files")
			}
		}
	}
}

var (
	sedPlain = regexp.MustCompile(`^(\d+|\$|/[^/\\]*/)?(,(\d+|\$|/[^/\\]*/))?!?[pdqD=]$`)
	sedFlags = regexp.MustCompile(`^[gpiIm0-9]*$`)
)

func safeSed(s string) bool {
	if sedPlain.MatchString(s) {
		return true
	}
	if len(s) < 4 || s[0] != 's' || strings.ContainsAny(s, "\n") || s[1] == '\\' {
		return false
	}
	parts, n := 0, 2
	for i := 2; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case s[1]:
			parts++
			n = i + 1
		}
		if parts == 2 {
			return sedFlags.MatchString(s[n:])
		}
	}
	return false
}

func safeAwk(s string) bool {
	return !strings.ContainsAny(s, "|>@") && !strings.Contains(s, "system") && !strings.Contains(s, "getline") && !strings.Contains(s, "close")
}
