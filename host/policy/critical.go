package policy

import (
	"errors"
	"path"
	"slices"
	"strings"
)

var errNested = errors.New("the command is nested too deeply to be judged")

// isDevice reports block devices, writing to which destroys what they hold, and
// the file that stops the machine.
func isDevice(p string) bool {
	p = path.Clean(p)
	name, ok := strings.CutPrefix(p, "/dev/")
	if !ok {
		if p == "/proc/sysrq-trigger" {
			return true
		}
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
var systemFolders = []string{"/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/opt", "/proc", "/root", "/run", "/sbin", "/srv", "/sys", "/usr", "/var", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/usr/share", "/var/lib",
	"/users", "/system", "/library", "/applications", "/volumes", "/private", "/private/etc", "/private/var", "/windows", "c:/windows", "c:/users"}

// wholeSystem reports a word that names a system or home folder, or all that
// is in one, when it is used in any of the folders.
func wholeSystem(w word, dirs []string) bool {
	t := strings.ToLower(strings.ReplaceAll(w.text, `\`, "/"))
	if w.dynamic {
		t = strings.ReplaceAll(t, `"`, "")
	}
	for _, h := range []string{"$home", "${home}", "~"} {
		if rest, ok := strings.CutPrefix(t, h); ok && (w.dynamic || w.tilde) && (rest == "" || rest[0] == '/') {
			t = home + rest
		}
	}
	if w.tilde && strings.HasPrefix(t, "~") {
		t = "/home/" + t[1:] // ~somebody
	}
	switch {
	case t == "":
		return false
	case path.IsAbs(t) || len(t) > 1 && t[1] == ':':
		return systemName(t, w.glob)
	}
	return !w.dynamic && slices.ContainsFunc(dirs, func(d string) bool {
		return path.IsAbs(d) && systemName(strings.ToLower(d)+"/"+t, w.glob)
	})
}

func systemName(t string, glob bool) bool {
	t = path.Clean(t)
	for glob && len(t) > 1 && strings.Trim(path.Base(t), "*?.[]!") == "" {
		t = path.Dir(t)
	}
	if len(t) == 2 && t[1] == ':' {
		return true // a drive
	}
	if dir, name := path.Split(t); name != "" && (dir == "/home/" || dir == "/users/") {
		return true // somebody's home
	}
	return slices.ContainsFunc(systemFolders, func(f string) bool {
		match, err := path.Match(t, f)
		return f == t || glob && err == nil && match
	})
}

// diskPrograms write partitions and file systems. What is in the value only
// shows what is there; a program without any is refused as it is.
var diskPrograms = map[string][]string{
	"fdisk": {"-l", "--list", "-V", "--version", "-h", "--help", "-s"}, "sfdisk": {"-l", "--list", "-d", "--dump", "-J", "--json", "-F", "-T", "-v", "-V", "-h", "--help", "--version"},
	"cfdisk": {"-V", "-h", "--help", "--version"}, "gdisk": {"-l"}, "cgdisk": nil, "sgdisk": {"-p", "--print", "-i", "--info", "-v", "--verify", "-V", "--version", "--help"},
	"parted": {"-l", "--list", "print", "-v", "--version", "-h", "--help"}, "partprobe": {"-d", "-s", "-h", "--help"},
	"mke2fs": nil, "mkswap": nil, "wipefs": nil, "blkdiscard": nil, "newfs": nil, "newfs_apfs": nil, "pvcreate": nil, "pvremove": nil, "vgremove": nil, "lvremove": nil,
}

func writesDisks(name string, texts []string) bool {
	shows, known := diskPrograms[name]
	return strings.HasPrefix(name, "mkfs") || known && !slices.ContainsFunc(texts, func(a string) bool { return slices.Contains(shows, a) })
}

// diskCommands are words that make a program of many uses one of those.
var diskCommands = map[string][]string{
	"cryptsetup": {"luksFormat", "erase", "luksErase", "reencrypt"}, "zpool": {"destroy", "create", "labelclear"}, "zfs": {"destroy"},
	"nvme": {"format", "sanitize"}, "mdadm": {"--zero-superblock"}, "hdparm": {"--security-erase", "--security-erase-enhanced"},
}

// critical says why a simple command, run in any of the folders, is refused
// whatever was granted, or "".
func critical(words []word, dirs []string) string {
	name := program(words[0].text)
	low := strings.ToLower(name)
	args := words[1:]
	texts := make([]string, len(args))
	for i, a := range args {
		texts[i] = a.text
	}
	has := func(short string, long ...string) bool { return hasFlag(texts, short, long...) }
	some := func(f func(string) bool) bool { return slices.ContainsFunc(texts, f) }
	whole := func(w word) bool { return wholeSystem(w, dirs) }
	system := slices.ContainsFunc(args, whole)
	const deletes, formats, device = "it deletes a whole system or home folder", "it formats a disk", "it writes to a device"
	switch {
	case name == "rm" && has("rR", "--recursive") && (system || slices.Contains(texts, "--no-preserve-root")):
		return deletes
	case (name == "chmod" || name == "chown" || name == "chgrp") && has("R", "--recursive") && system:
		return "it changes the permissions of a whole system or home folder"
	case name == "mv" && slices.ContainsFunc(moved(args), whole):
		return "it moves a whole system or home folder away"
	case name == "find" && findDeletes(texts) && slices.ContainsFunc(startPoints(args, true), whole):
		return deletes
	case name == "rsync" && some(func(a string) bool { return strings.HasPrefix(a, "--del") }) && len(args) > 0 && whole(args[len(args)-1]):
		return deletes
	case writesDisks(name, texts), some(func(a string) bool { return slices.Contains(diskCommands[name], a) }):
		return formats
	case low == "diskpart", low == "format-volume", low == "clear-disk", low == "format" && some(func(a string) bool { return len(a) == 2 && a[1] == ':' }), low == "format.com":
		return formats
	case name == "diskutil" && some(func(a string) bool {
		return strings.HasPrefix(strings.ToLower(a), "erase") || strings.HasPrefix(strings.ToLower(a), "partition")
	}):
		return formats
	case name == "dd" && some(func(a string) bool { return strings.HasPrefix(a, "of=") && isDevice(a[3:]) }):
		return device
	case slices.Contains([]string{"shred", "tee", "cp", "mv", "truncate", "pv"}, name) && len(texts) > 0 && isDevice(texts[len(texts)-1]),
		(name == "tee" || name == "shred") && some(isDevice):
		return device
	case slices.Contains([]string{"shutdown", "reboot", "halt", "poweroff"}, name) && !has("c", "--help", "--version"), name == "systemctl" && some(stopsMachine), (name == "init" || name == "telinit") && some(func(a string) bool { return a == "0" || a == "6" }):
		return "it stops the machine"
	case name == "kill" && len(texts) > 1 && texts[len(texts)-1] == "-1", name == "killall5":
		return "it kills every process"
	case (low == "del" || low == "rd" || low == "rmdir" || low == "erase" || low == "deltree") && system && some(func(a string) bool { return strings.EqualFold(a, "/s") }):
		return deletes
	case (low == "remove-item" || low == "ri") && system && some(func(a string) bool { return strings.HasPrefix(strings.ToLower(a), "-rec") }):
		return deletes
	}
	return ""
}

func stopsMachine(verb string) bool {
	return slices.Contains([]string{"poweroff", "reboot", "halt", "kexec", "soft-reboot"}, verb)
}

// moved are the words that mv takes away: all operands but the target.
func moved(args []word) (out []word) {
	last := true
	for i := 0; i < len(args); i++ {
		switch t := args[i].text; {
		case t == "-t" || t == "--target-directory":
			i++
			last = false
		case strings.HasPrefix(t, "-t"), strings.HasPrefix(t, "--target-directory="):
			last = false
		case !strings.HasPrefix(t, "-"):
			out = append(out, args[i])
		}
	}
	if last && len(out) > 0 {
		out = out[:len(out)-1]
	}
	return out
}

// findDeletes reports a find that deletes what it finds.
func findDeletes(texts []string) bool {
	run := false
	for _, t := range texts {
		switch t {
		case "-delete":
			return true
		case "-exec", "-execdir", "-ok", "-okdir":
			run = true
		case ";", "+":
			run = false
		case "rm", "/bin/rm", "/usr/bin/rm", "unlink", "shred", "truncate":
			if run {
				return true
			}
		}
	}
	return false
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
