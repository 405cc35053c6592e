package policy

import (
	"errors"
	"path"
	"slices"
	"strings"
)

var errNested = errors.New("the command is nested too deeply to be judged")

// isDevice reports block devices: writing to one destroys what it holds.
func isDevice(p string) bool {
	p = path.Clean(p)
	name, ok := strings.CutPrefix(p, "/dev/")
	if !ok {
		return strings.HasPrefix(strings.ToLower(p), `\\.\physicaldrive`)
	}
	for _, pre := range []string{"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "mapper/", "dm-", "md", "loop", "mem", "kmem", "port"} {
		if strings.HasPrefix(name, pre) {
			return true
		}
	}
	return false
}

// systemFolders must not be deleted or given away as a whole.
var systemFolders = []string{"/", "~", "$HOME", "${HOME}", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/opt", "/proc", "/root", "/run", "/sbin", "/srv", "/sys", "/usr", "/var", "/users", "/system", "/library", "/applications", "/windows", "c:", "c:/windows", "c:/users"}

func wholeSystem(w word) bool {
	t := strings.ToLower(strings.ReplaceAll(w.text, `\`, "/"))
	if w.dynamic {
		t = strings.ReplaceAll(strings.Trim(w.text, `"`), `"`, "")
	}
	if strings.HasPrefix(t, "~") && !w.tilde {
		return false
	}
	for {
		u := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(t, "/*"), "/.*"), "/.")
		if u = strings.TrimRight(u, "/"); u == t {
			break
		}
		t = u
	}
	if t == "" {
		return w.text != ""
	}
	return slices.Contains(systemFolders, path.Clean(t))
}

// critical says why a simple command is refused whatever was granted, or "".
func critical(words []word) string {
	name := program(words[0].text)
	low := strings.ToLower(name)
	args := words[1:]
	texts := make([]string, len(args))
	for i, a := range args {
		texts[i] = a.text
	}
	has := func(short string, long ...string) bool { return hasFlag(texts, short, long...) }
	system := slices.ContainsFunc(args, wholeSystem)
	switch {
	case name == "rm" && has("rR", "--recursive") && (system || slices.Contains(texts, "--no-preserve-root")):
		return "it deletes a whole system or home folder"
	case (name == "chmod" || name == "chown" || name == "chgrp") && has("R", "--recursive") && system:
		return "it changes the permissions of a whole system or home folder"
	case name == "mv" && len(args) > 0 && slices.ContainsFunc(args[:len(args)-1], wholeSystem):
		return "it moves a whole system or home folder away"
	case name == "find" && slices.Contains(texts, "-delete") && len(args) > 0 && wholeSystem(args[0]):
		return "it deletes a whole system or home folder"
	case strings.HasPrefix(name, "mkfs"), slices.Contains([]string{"mke2fs", "mkswap", "wipefs", "blkdiscard", "newfs", "newfs_apfs"}, name):
		return "it formats a disk"
	case low == "diskpart", low == "format" && slices.ContainsFunc(texts, func(a string) bool { return len(a) == 2 && a[1] == ':' }), low == "format.com":
		return "it formats a disk"
	case name == "diskutil" && slices.ContainsFunc(texts, func(a string) bool {
		return strings.HasPrefix(strings.ToLower(a), "erase") || strings.HasPrefix(strings.ToLower(a), "partition")
	}):
		return "it formats a disk"
	case name == "dd" && slices.ContainsFunc(texts, func(a string) bool { return strings.HasPrefix(a, "of=") && isDevice(a[3:]) }):
		return "it writes to a device"
	case slices.Contains([]string{"shred", "tee", "cp", "mv", "truncate", "pv"}, name) && len(texts) > 0 && isDevice(texts[len(texts)-1]),
		name == "tee" && slices.ContainsFunc(texts, isDevice):
		return "it writes to a device"
	case slices.Contains([]string{"shutdown", "reboot", "halt", "poweroff"}, name), (name == "init" || name == "telinit") && slices.ContainsFunc(texts, func(a string) bool { return a == "0" || a == "6" }):
		return "it stops the machine"
	case name == "kill" && slices.Contains(texts, "-1") && len(texts) > 1 && texts[len(texts)-1] == "-1":
		return "it kills every process"
	case (low == "del" || low == "rd" || low == "rmdir" || low == "erase" || low == "deltree") && system && slices.ContainsFunc(texts, func(a string) bool { return strings.EqualFold(a, "/s") }):
		return "it deletes a whole system or home folder"
	case low == "remove-item" && system && slices.ContainsFunc(texts, func(a string) bool { return strings.HasPrefix(strings.ToLower(a), "-rec") }):
		return "it deletes a whole system or home folder"
	}
	return ""
}

// hasFlag finds a letter in a cluster of short options, or a long option, which
// may be shortened as getopt allows. It stops at "--".
func hasFlag(args []string, short string, long ...string) bool {
	return flagAt(args, short, long...) >= 0
}

func flagAt(args []string, short string, long ...string) int {
	for i, a := range args {
		switch {
		case a == "--":
			return -1
		case strings.HasPrefix(a, "--"):
			name, _, _ := strings.Cut(a, "=")
			if len(name) > 3 && slices.ContainsFunc(long, func(l string) bool { return strings.HasPrefix(l, name) }) || slices.Contains(long, name) {
				return i
			}
		case len(a) > 1 && a[0] == '-':
			if slices.Contains(long, a) || short != "" && strings.ContainsAny(a[1:], short) {
				return i
			}
		}
	}
	return -1
}
