package reach

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// workspace is where relative paths begin when no folder is given.
const workspace = "/ws"

// Virtual translates what a model or a person wrote into a virtual path:
// relative to cwd (a virtual path, "" is "/ws"), absolute on the host, already
// virtual, or a file:// URI. A relative path that climbs out of its mount is a
// *policy.Denial; a host path outside every mount matches fs.ErrNotExist, unless
// "/" itself is mounted (as "/host", where restrict_to_workspace is off). It
// touches no disk and grants nothing.
func (t *Tree) Virtual(cwd, p string) (string, error) {
	name, err := t.translate(cwd, p)
	if err != nil {
		return "", &fs.PathError{Op: "open", Path: p, Err: err}
	}
	return name, nil
}

func (t *Tree) translate(cwd, p string) (string, error) {
	if strings.HasPrefix(strings.ToLower(p), "file:") {
		var err error
		if p, err = fromURI(p); err != nil {
			return "", err
		}
	}
	if err := checkName(filepath.ToSlash(p)); err != nil {
		return "", err
	}
	if p == "" {
		p = "."
	}
	if cwd == "" {
		cwd = workspace
	}
	if slashed := filepath.ToSlash(p); !filepath.IsAbs(p) && !strings.HasPrefix(slashed, "/") {
		return t.relative(cwd, slashed)
	}
	return t.absolute(p)
}

func (t *Tree) relative(cwd, p string) (string, error) {
	from, _, _, err := t.locate(cwd)
	if err != nil {
		return "", err
	}
	full := path.Join(cwd, p)
	if to, _, _, err := t.locate(full); err == nil && (from == nil || to == from) {
		return full, nil
	}
	// Above the mount lies the host's parent folder, which another mount may hold.
	if from != nil {
		if name, ok := t.fromHost(filepath.Join(from.real, filepath.FromSlash(strings.TrimPrefix(cwd, from.Name)), filepath.FromSlash(p))); ok {
			return name, nil
		}
	}
	return "", &policy.Denial{
		Use:   policy.Use{Cap: abi.FSRead, Target: full},
		Layer: "files", Final: true, Why: whyEscape,
	}
}

func (t *Tree) absolute(p string) (string, error) {
	if name, ok := t.fromHost(p); ok {
		return name, nil
	}
	if _, _, clean, err := t.locate(filepath.ToSlash(p)); err == nil {
		return clean, nil
	}
	return "", fmt.Errorf("outside every folder that is open to the agent: %w", fs.ErrNotExist)
}

// fromHost finds the mount that holds a host path, the deepest first. A mount
// of the host's whole root comes last, after names that are virtual already.
func (t *Tree) fromHost(p string) (string, bool) {
	if !filepath.IsAbs(p) {
		return "", false
	}
	p = filepath.Clean(p)
	var best *mount
	var rest string
	length := -1
	for _, m := range t.mounts.all() {
		if !t.sees(m.Mount) {
			continue
		}
		for _, dir := range []string{m.Dir, m.real} {
			if r, ok := below(dir, p); ok && len(dir) > length {
				best, rest, length = m, r, len(dir)
			}
		}
	}
	if best == nil {
		return "", false
	}
	if isRootDir(best.Dir) {
		if m, _, clean, err := t.locate(filepath.ToSlash(p)); err == nil && m != nil {
			return clean, true
		}
	}
	return best.virtual(filepath.ToSlash(rest)), true
}

// below returns p relative to dir when it is dir or lies in it: by components,
// never by prefix ("/ws-evil" is not in "/ws", "/ws/..notes" is).
func below(dir, p string) (string, bool) {
	if foldsCase {
		if len(p) >= len(dir) && strings.EqualFold(p[:len(dir)], dir) {
			p = dir + p[len(dir):]
		}
	}
	if p == dir {
		return ".", true
	}
	if !strings.HasSuffix(dir, string(filepath.Separator)) {
		dir += string(filepath.Separator)
	}
	return strings.CutPrefix(p, dir)
}

const foldsCase = runtime.GOOS == "windows" || runtime.GOOS == "darwin"

func isRootDir(dir string) bool { return filepath.Dir(dir) == dir }

// fromURI reads a file: URI (RFC 8089). Another machine's files are not ours.
func fromURI(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Opaque != "" {
		return "", fmt.Errorf("not a file URI: %w", abi.ErrInvalid)
	}
	if u.Host != "" && !strings.EqualFold(u.Host, "localhost") {
		return "", fmt.Errorf("a file URI of another machine: %w", abi.ErrInvalid)
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("a file URI has no query or fragment: %w", abi.ErrInvalid)
	}
	p := u.Path
	if runtime.GOOS == "windows" && len(p) > 2 && p[0] == '/' && p[2] == ':' {
		p = p[1:]
	}
	if p == "" {
		return "", fmt.Errorf("an empty file URI: %w", abi.ErrInvalid)
	}
	return filepath.FromSlash(p), nil
}

// Host translates a virtual path into one of the host, for people, editors and
// programs. It does not resolve links.
func (t *Tree) Host(name string) (string, error) {
	m, rel, clean, err := t.locate(name)
	if err == nil && m == nil {
		err = errors.New("the virtual root is no folder of the host")
	}
	if err != nil {
		return "", &fs.PathError{Op: "open", Path: clean, Err: err}
	}
	return filepath.Join(m.Dir, filepath.FromSlash(rel)), nil
}

// Display is the shortest name that Virtual(cwd, …) takes back: relative at or
// below cwd ("" is "/ws"), a host path elsewhere, the virtual path where there is none.
func (t *Tree) Display(cwd, name string) string {
	if cwd == "" {
		cwd = workspace
	}
	cwd, name = path.Clean(cwd), path.Clean(name)
	if name == cwd {
		return "."
	}
	if rel, ok := strings.CutPrefix(name, strings.TrimSuffix(cwd, "/")+"/"); ok {
		return rel
	}
	if p, err := t.Host(name); err == nil {
		return p
	}
	return name
}
