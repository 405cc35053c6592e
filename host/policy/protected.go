package policy

import (
	"path"
	"strings"
	"unicode"
)

// protectedName is a name that is never written without a grant that spells
// it out, whether or not it exists yet: writing it would run code later, or
// change what is allowed.
type protectedName struct {
	name string   // for people
	run  []string // folded components
	end  bool     // only as the last component: the folder's content is ordinary
	why  string
}

const (
	whyGit    = "git runs programs that it names"
	whyShell  = "a shell runs it at its start"
	whyEditor = "an editor may run what it names"
	whyElf    = "it steers this program"
	whyAgent  = "an agent may start what it names"
	whyTool   = "a program reads options from it that can run others"
)

// protectedNames is the one table of FS-26 and FS-27, already folded.
var protectedNames = func() []protectedName {
	table := []struct {
		why   string
		names string
	}{
		{whyGit, ".git/hooks .git/config .git/config.worktree .git/commondir .git/modules .git/worktrees .git/info/attributes .git$ .gitconfig .config/git"},
		{whyShell, ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout " +
			".kshrc .mkshrc .cshrc .tcshrc .login .logout .xprofile .xinitrc .xsession .xsessionrc .envrc .config/fish .config/autostart .config/environment.d " +
			"profile.ps1 microsoft.powershell_profile.ps1"},
		{whyElf, ".elfhost"},
		{whyAgent, ".mcp.json .claude .cursor .codex .gemini"},
		{whyEditor, ".vscode .idea .zed .fleet .vs .devcontainer .devcontainer.json .exrc .nvimrc .nvim.lua .vimrc .gvimrc .vim .config/nvim .emacs .emacs.d .dir-locals.el .sublime-project"},
		{whyTool, ".ripgreprc .ssh .gnupg .npmrc .pypirc .netrc"},
	}
	var out []protectedName
	for _, row := range table {
		for n := range strings.FieldsSeq(row.names) {
			n, end := strings.CutSuffix(n, "$")
			out = append(out, protectedName{n, strings.Split(n, "/"), end, row.why})
		}
	}
	return out
}()

// Protected reports whether writing the path needs a grant of its own, and
// why. Names are compared as the least exact file system would: case,
// invisible characters, trailing dots and spaces do not count.
func Protected(name string) (bool, string) {
	ns := protectedIn(splitPath(path.Clean("/" + strings.ReplaceAll(name, `\`, "/"))))
	if len(ns) == 0 {
		return false, ""
	}
	return true, ns[0].name + " is protected, because " + ns[0].why
}

func protectedIn(segs []string) []protectedName {
	var out []protectedName
	for i := range segs {
		segs := segs[i:]
		head := foldName(segs[0])
		if head == "" || head[0] != '.' && !strings.HasSuffix(head, ".ps1") {
			continue
		}
		for _, n := range protectedNames {
			if n.run[0] == head && len(n.run) <= len(segs) && runMatches(n.run, segs) && (!n.end || len(segs) == len(n.run)) {
				out = append(out, n)
			}
		}
	}
	return out
}

func runMatches(run, segs []string) bool {
	for i, r := range run {
		if foldName(segs[i]) != r {
			return false
		}
	}
	return true
}

// foldName is a component as a case-insensitive file system sees it: HFS+
// skips invisible characters, Windows trailing dots and spaces and what follows
// a colon, and knows git~1.
func foldName(s string) string {
	s, _, _ = strings.Cut(s, ":")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == 'ſ':
			return 's'
		case r == '\u212a':
			return 'k'
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return unicode.ToLower(r)
	}, s)
	s = strings.TrimRight(s, ". ")
	if s == "git~1" {
		return ".git"
	}
	return s
}
