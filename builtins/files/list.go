package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
	"syscall"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
)

// listMost is how many names one answer holds.
const listMost = 1000

type listArgs struct {
	Path string `json:"path"`
	Cwd  string `json:"cwd"`
}

func (r *room) list(ctx context.Context, c host.Call) (abi.Result, error) {
	a, err := tool.Args[listArgs](c)
	if err != nil {
		return abi.Result{}, err
	}
	if a.Path == "" {
		a.Path = "."
	}
	t, err := r.locate(a.Path, a.Cwd)
	if err != nil {
		return r.failure(ctx, c, a.Path, t, err)
	}
	entries, err := r.tree.ReadDir(ctx, c.Rights, t.name)
	if errors.Is(err, syscall.ENOTDIR) {
		return abi.Errorf("%s is a file, not a folder. Read it with %s.", t.show, r.names.read), nil
	}
	if err != nil {
		if info, serr := r.tree.Stat(ctx, c.Rights, t.name); serr == nil && !info.IsDir() {
			return abi.Errorf("%s is a file, not a folder. Read it with %s.", t.show, r.names.read), nil
		}
		return r.failure(ctx, c, a.Path, t, err)
	}
	if len(entries) == 0 {
		return abi.Textf("%s is empty.", t.show), nil
	}
	sort.SliceStable(entries, func(i, j int) bool { return entries[i].IsDir() && !entries[j].IsDir() })
	var b strings.Builder
	fmt.Fprintf(&b, "%s:\n", t.show)
	for _, e := range entries[:min(len(entries), listMost)] {
		if err := ctx.Err(); err != nil {
			return abi.Result{}, err
		}
		b.WriteString(r.entry(ctx, c, t, e))
	}
	if len(entries) > listMost {
		fmt.Fprintf(&b, "(%d of %d names. Use Glob to look for more.)\n", listMost, len(entries))
	}
	return abi.Text(strings.TrimSuffix(b.String(), "\n")), nil
}

// entry is one line: a folder's name with a slash, a file's with its size, a
// link's with where it leads. Facts that are not granted are left out, unasked.
func (r *room) entry(ctx context.Context, c host.Call, dir target, e fs.DirEntry) string {
	rights := c.Rights
	rights.Decide, rights.Note = nil, nil
	name, full := printable(e.Name()), path.Join(dir.name, e.Name())
	switch {
	case e.IsDir():
		return name + "/\n"
	case e.Type()&fs.ModeSymlink != 0:
		to, err := r.tree.ReadLink(ctx, rights, full)
		if err != nil {
			return name + " -> (leads out of the workspace)\n"
		}
		return name + " -> " + printable(to) + "\n"
	case !e.Type().IsRegular():
		return fmt.Sprintf("%s (%s)\n", name, special(e.Type()))
	}
	info, err := r.tree.Lstat(ctx, rights, full)
	if err != nil {
		return name + "\n"
	}
	return fmt.Sprintf("%s (%s)\n", name, kb(info.Size()))
}

func special(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

// printable quotes a name that would break a listing.
func printable(name string) string {
	for _, r := range name {
		if r < 0x20 || r == 0x7f || r == '\uFFFD' {
			return fmt.Sprintf("%q", name)
		}
	}
	return name
}
