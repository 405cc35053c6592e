package wasi

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"path"
)

const direntSize = 24

// listing is a folder being read. It keeps a window of entries, so that a
// folder with millions of names costs a guest time and the host no memory.
type listing struct {
	from uint64 // cookie of the first entry in the window
	win  []dirent
	end  bool // nothing comes after the window
}

type dirent struct {
	name string
	kind byte
}

const (
	chunk     = 512
	maxWindow = 4096
)

func fdReaddir(ctx context.Context, s *System, m Memory, p []uint64) Errno {
	d, buf, size, cookie, res := s.at(p[0]), uint32(p[1]), uint32(p[2]), p[3], uint32(p[4])
	switch {
	case d == nil || !d.dir:
		return eBADF
	case size < direntSize:
		return eINVAL // not even a header fits: the caller could not go on
	case !m.has(buf, uint64(size)) || !m.has(res, 4):
		return eFAULT
	}
	size = min(size, 1<<16) // enough for one answer; the caller comes again
	var out []byte
	for uint32(len(out)) < size {
		e, ok, err := s.entry(ctx, d, cookie)
		if err != nil {
			return errnoOf(err)
		}
		if !ok {
			break
		}
		cookie++
		out = appendDirent(out, path.Join(d.name, e.name), e, cookie)
	}
	// A full buffer says that more follows, so the last entry may be cut.
	out = out[:min(uint32(len(out)), size)]
	return wrote(m.Write(buf, out) && m.putU32(res, uint32(len(out))))
}

func appendDirent(b []byte, full string, e dirent, next uint64) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, next)
	b = le.AppendUint64(b, inode(full))
	b = le.AppendUint32(b, uint32(len(e.name)))
	b = append(b, e.kind, 0, 0, 0)
	return append(b, e.name...)
}

// entry returns the entry with a cookie. Cookies 0 and 1 are "." and "..".
func (s *System) entry(ctx context.Context, d *descriptor, cookie uint64) (dirent, bool, error) {
	switch cookie {
	case 0:
		if err := s.rewind(ctx, d); err != nil {
			return dirent{}, false, err
		}
		return dirent{".", typeDirectory}, true, nil
	case 1:
		return dirent{"..", typeDirectory}, true, nil
	}
	if cookie -= 2; cookie < d.list.from {
		if err := s.rewind(ctx, d); err != nil {
			return dirent{}, false, err
		}
	}
	for {
		i := cookie - d.list.from
		if i < uint64(len(d.list.win)) {
			return d.list.win[i], true, nil
		}
		if d.list.end {
			return dirent{}, false, nil
		}
		if err := s.more(ctx, d); err != nil {
			return dirent{}, false, err
		}
	}
}

// rewind starts again from the first name.
func (s *System) rewind(ctx context.Context, d *descriptor) error {
	used := d.list.from > 0 || len(d.list.win) > 0 || d.list.end
	if d.name != "/" && s.cfg.Tree != nil && (used || d.file == nil) {
		f, err := s.cfg.Tree.Open(ctx, s.cfg.Rights, d.name, 0, 0)
		if err != nil {
			return err
		}
		d.close()
		d.file = f
	}
	d.list = listing{}
	return nil
}

// more reads the next names into the window.
func (s *System) more(ctx context.Context, d *descriptor) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.name == "/" {
		for _, e := range s.mounts(ctx) {
			d.list.win = append(d.list.win, dirent{e.Name(), typeOf(e.Type())})
		}
		d.list.end = true
		return nil
	}
	if len(d.list.win) >= maxWindow {
		d.list.from += uint64(len(d.list.win))
		d.list.win = d.list.win[:0]
	}
	list, err := d.file.ReadDir(chunk)
	for _, e := range list {
		d.list.win = append(d.list.win, dirent{e.Name(), typeOf(e.Type())})
	}
	if len(list) == 0 {
		d.list.end = true
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return nil
}

// mounts lists the root: what the grants let a guest see there, without a
// question to anybody.
func (s *System) mounts(ctx context.Context) []fs.DirEntry {
	if s.cfg.Tree == nil {
		return nil
	}
	rights := s.cfg.Rights
	rights.Decide, rights.Note = nil, nil
	list, err := s.cfg.Tree.ReadDir(ctx, rights, "/")
	if err != nil {
		return nil
	}
	return list
}
