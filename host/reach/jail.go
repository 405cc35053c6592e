package reach

import (
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/host/policy"
)

// jail says what a confined program finds: every rung carries out the same one.
type jail struct {
	Kind    string
	Argv    []string
	Env     []string
	Dir     string
	Binds   []bind // parents before children: a later one covers an earlier one
	Empty   []string
	Network bool
	Pids    int
}

// bind makes a path of the host visible at the same place.
type bind struct {
	Path   string
	Target string // of a link that is made anew; "" for a bind
	Write  bool

	copies []entry // of the system: making these anew does as well
}

// system is what programs need to run at all, and nothing that is a person's.
// What is missing is left out. Each entry costs every command some 50 µs, so
// what only an administrator's programs read is not here.
var system = [...]string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store",
	"/run/current-system", "/home/linuxbrew",
	"/etc/alternatives", "/etc/ssl", "/etc/ca-certificates/extracted", "/etc/pki", "/etc/crypto-policies", "/etc/ld.so.cache",
	"/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts", "/etc/localtime", "/etc/profile", "/etc/profile.d",
	"/etc/mime.types", "/etc/services", "/etc/protocols", "/etc/gitconfig", "/etc/fonts",
	"/etc/java-11-openjdk", "/etc/java-17-openjdk", "/etc/java-21-openjdk", "/etc/os-release", "/etc/static",
}

// systemBinds finds what there is of system.
func systemBinds() []bind {
	var out []bind
	for _, s := range system {
		out = append(out, systemBind(s)...)
	}
	return out
}

// plan works out a jail. /tmp and the home folder are empty and private, the
// rest is bound in.
func plan(kind string, p Program, shown []bind) jail {
	j := jail{Kind: kind, Argv: p.Argv, Env: p.Env, Dir: p.Dir, Network: p.Network, Pids: p.Pids}
	if j.Pids == 0 {
		j.Pids = defaultPids
	}
	j.Empty = []string{"/tmp"}
	if home := lookup(p.Env, "HOME"); filepath.IsAbs(home) && filepath.Clean(home) != "/" && !systemPath(home) {
		j.Empty = append(j.Empty, filepath.Clean(home))
	}
	binds := slices.Clone(shown)
	if p.Network {
		binds = append(binds, systemBind("/etc/resolv.conf")...)
	}
	binds = beside(p, binds)
	var write []string
	for _, w := range p.Write {
		write = append(write, filepath.Clean(w))
	}
	if p.ReadOnly {
		binds = append(binds, bind{Path: p.Dir})
	} else {
		write = append(write, filepath.Clean(p.Dir))
	}
	slices.Sort(write)
	write = slices.Compact(write)
	for _, w := range write {
		binds = append(binds, bind{Path: w, Write: true})
	}
	for _, w := range write {
		binds = append(binds, guarded(w)...)
	}
	for _, r := range p.Read {
		binds = append(binds, bind{Path: filepath.Clean(r)})
	}
	slices.SortStableFunc(binds, func(a, b bind) int { return strings.Count(a.Path, "/") - strings.Count(b.Path, "/") })
	j.Binds = slices.DeleteFunc(binds, func(b bind) bool {
		_, err := os.Lstat(b.Path)
		return err != nil
	})
	return j
}

// folders are what of the host a person lets the program see.
func folders(p Program) []string {
	var out []string
	for _, f := range slices.Concat(p.Write, p.Read, []string{p.Dir}) {
		out = append(out, filepath.Clean(f))
	}
	return out
}

// beside makes the system's paths fit the folders that a person shows. Where one
// of these holds such a path, nothing may be made at it: it would be made, or
// overwritten, on the host. A file is bound over itself, a link is there.
func beside(p Program, shown []bind) []bind {
	own := folders(p)
	var out []bind
	for _, b := range shown {
		if slices.ContainsFunc(own, func(o string) bool { _, in := below(o, b.Path); return in }) {
			if b.Target != "" {
				continue
			}
			b.copies = nil
		}
		out = append(out, b)
	}
	return out
}

func systemPath(p string) bool {
	return slices.ContainsFunc(system[:], func(s string) bool { _, in := below(p, s); return in })
}

// systemBind keeps links such as /bin -> usr/bin as links, and those that lead
// into /usr, where everything is shown. Empty folders are left out.
func systemBind(s string) []bind {
	info, err := os.Lstat(s)
	if err != nil {
		return nil
	}
	if info.Mode()&os.ModeSymlink != 0 {
		target, err := os.Readlink(s)
		if err == nil && (strings.Count(s, "/") == 1 || strings.HasPrefix(resolved(s), "/usr/")) {
			return []bind{{Path: s, Target: target}}
		}
	}
	if info.IsDir() && empty(s) {
		return nil
	}
	if strings.HasPrefix(s, "/etc/") {
		return []bind{{Path: s, copies: entries(s)}}
	}
	return []bind{{Path: s}}
}

func resolved(s string) string {
	s, err := filepath.EvalSymlinks(s)
	if err != nil {
		return ""
	}
	return s
}

func empty(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

// guarded finds the protected names at the top of a writable folder and in its
// .git: they stay readable. Names that are not there yet cannot be held by a
// mount; the tools that would read them ask first.
func guarded(dir string) []bind {
	var out []bind
	list, _ := os.ReadDir(dir)
	for _, e := range list {
		p := filepath.Join(dir, e.Name())
		if e.Type()&os.ModeSymlink != 0 {
			continue // a bind would follow it
		}
		if is, _ := policy.Protected(path.Join(workspace, e.Name())); is && e.Name() != ".git" {
			out = append(out, bind{Path: p})
		}
		if e.Name() != ".git" || !e.IsDir() {
			continue
		}
		sub, _ := os.ReadDir(p)
		for _, g := range sub {
			if is, _ := policy.Protected(path.Join(workspace, ".git", g.Name())); is && g.Type()&os.ModeSymlink == 0 {
				out = append(out, bind{Path: filepath.Join(p, g.Name())})
			}
		}
	}
	return out
}
