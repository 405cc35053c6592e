package reach

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// place is a name that was located, allowed and resolved. m is nil for the
// virtual root.
type place struct {
	m    *mount
	rel  string // free of links, but for the last component when it was not to be followed
	name string // virtual path as given, cleaned
	real string // virtual path of rel
}

// at locates a name, asks the rights for caps, and resolves its links. follow
// says whether a link in the last component is followed too.
func (t *Tree) at(ctx context.Context, r policy.Rights, name string, follow bool, caps ...abi.Capability) (place, error) {
	m, rel, clean, err := t.locate(name)
	if err != nil {
		return place{}, err
	}
	p := place{m: m, rel: rel, name: clean, real: clean}
	if m == nil {
		return p, nil
	}
	if err := p.check(ctx, r, clean, caps); err != nil {
		return p, err
	}
	follow = follow || strings.HasSuffix(name, "/")
	if p.rel, err = m.resolve(rel, follow); err != nil {
		if errors.Is(err, errEscape) {
			err = refuse(r, policy.Use{Cap: caps[0], Target: clean}, "it is a link that leads out of its mount")
		}
		return p, err
	}
	if p.real = m.virtual(p.rel); p.real != clean {
		if err := p.check(ctx, r, p.real, caps); err != nil {
			return p, err
		}
	}
	return p, nil
}

// check asks for one name. A hidden mount was revealed: that is the right.
func (p place) check(ctx context.Context, r policy.Rights, name string, caps []abi.Capability) error {
	for _, c := range caps {
		u := policy.Use{Cap: c, Target: name}
		switch {
		case c == abi.FSWrite && (p.m.ReadOnly || p.m.Hidden):
			return refuse(r, u, "the folder is open for reading only")
		case p.m.Hidden:
			if r.Note != nil {
				r.Note(u, nil)
			}
		default:
			if err := r.Check(ctx, u); err != nil {
				return err
			}
		}
	}
	return nil
}

// resolve follows the links of rel inside the mount. What does not exist is
// kept as it is, so that it can be made.
func (m *mount) resolve(rel string, follow bool) (string, error) {
	if rel == "." || m.plain(rel) {
		return rel, nil
	}
	done, rest, links := ".", strings.Split(rel, "/"), 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if done == "." {
				return "", errEscape
			}
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, part)
		info, err := m.root.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			return m.missing(next, rest)
		} else if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 || len(rest) == 0 && !follow {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", syscall.ELOOP
		}
		target, err := m.root.Readlink(next)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) || strings.HasPrefix(target, "/") {
			// An absolute link is fine when it says, the long way, a place in here.
			if target, err = m.inside(target); err != nil {
				return "", err
			}
			done = "."
		}
		target = filepath.ToSlash(target)
		if len(target)+len(done)+len(strings.Join(rest, "/")) > maxPath {
			return "", syscall.ENAMETOOLONG
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return done, nil
}

func (m *mount) missing(next string, rest []string) (string, error) {
	for _, part := range rest {
		if part == ".." { // nothing there to climb from
			return "", fs.ErrNotExist
		}
	}
	return path.Join(append([]string{next}, rest...)...), nil
}

func (m *mount) inside(target string) (string, error) {
	target = filepath.Clean(target)
	for _, dir := range []string{m.real, m.Dir} {
		if rel, ok := below(dir, target); ok {
			return rel, nil
		}
	}
	return "", errEscape
}

// admit refuses what an open file turned out to be: neither regular nor a
// folder, on a kernel file system, or with a second name that nobody can see.
func (t *Tree) admit(r policy.Rights, p place, id identity, use policy.Use) error {
	if !id.regular && !id.folder {
		return ErrNotRegular
	}
	if p.m.kernelFS(id) {
		return refuse(r, use, "it belongs to the kernel (/proc, /sys, /dev)")
	}
	if t.DenyMultilink && id.regular && id.links > 1 {
		return refuse(r, use, fmt.Sprintf("it has %d hard links, and the policy denies such files", id.links))
	}
	return nil
}

// identity is what decides about an open file.
type identity struct {
	regular, folder bool
	dev, links      uint64
	size            int64
	special         bool // the platform already knows that it is the kernel's
}

// ErrNotRegular is a FIFO, socket or device.
// ErrNotRegular is the error of a pipe, a socket or a device: such are never opened.
var ErrNotRegular = fmt.Errorf("not a regular file or folder: %w", abi.ErrInvalid)
