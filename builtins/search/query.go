package search

import (
	"context"
	"io/fs"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/elfhost/elfhost/builtins/internal/textfile"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

// wholeFile is the largest file that is searched in one piece; larger ones
// are searched in pieces of chunk bytes.
const (
	wholeFile = 16 << 20
	chunk     = 8 << 20
	longest   = 256 << 20 // bytes of one line; a longer one is searched in parts
)

// query is one search.
type query struct {
	pattern
	filter
	mode          mode
	invert        bool
	before, after int
	only          bool // show the matched parts, not their lines
	perFile       int  // matching lines of one file; 0: no limit
	keep          int  // lines that are kept for showing, over all files
	asText        bool // search binary files as if they were text
	columns       bool // the column of the first match is wanted
	sortBy        string
	reverse       bool
}

type mode int

const (
	showLines mode = iota
	showFiles
	showFilesWithout
	showCounts
	showCountMatches
	listFiles // no search: the files that would be searched
)

// hit is a line to show.
type hit struct {
	line    int
	offset  int // of the first match in the line, in bytes
	text    []byte
	size    int // bytes of the whole line
	spans   [][2]int
	context bool
	gap     bool // lines are left out before it
}

// found is what was found in one file.
type found struct {
	name    string
	hits    []hit
	lines   int // matching lines, kept or not
	matches int
	note    string // "UTF-16LE", "binary after byte 1000"
	info    fs.FileInfo
}

// answer is the result of a query.
type answer struct {
	files    []found
	lines    int // matching lines in all
	searched int
	binary   int
	sieve    *sieve
	skipped  *unreadable
}

// run searches the targets, which are virtual paths of files or folders.
func (q *query) run(ctx context.Context, r *room, rights policy.Rights, top string, targets []string) (*answer, error) {
	s, err := r.sieve(ctx, rights, q.filter, top)
	if err != nil {
		return nil, err
	}
	var skipped unreadable
	run := &searcher{query: q, ctx: ctx, unread: &skipped}
	if q.mode != listFiles {
		if run.m, err = compile(q.pattern); err != nil {
			return nil, err
		}
	}
	run.pool.New = func() any { return run.worker() }
	for _, target := range targets {
		named := false // a file that is named is searched whatever the rules say
		if info, err := r.tree.Stat(ctx, rights, target); err != nil {
			return nil, err
		} else if !info.IsDir() {
			named = true
		}
		w := reach.Walk{File: run.file, Skipped: skipped.note, Folder: s.folder}
		if named {
			w.Folder = nil
		}
		if err := r.tree.Walk(ctx, rights, target, w); err != nil {
			return nil, err
		}
	}
	a := &answer{files: run.files, lines: int(run.lines.Load()), searched: int(run.searched.Load()),
		binary: int(run.binary.Load()), sieve: s, skipped: &skipped}
	q.sort(a)
	return a, nil
}

func (q *query) sort(a *answer) {
	less := func(i, j int) bool { return a.files[i].name < a.files[j].name }
	if q.sortBy == "modified" {
		less = func(i, j int) bool {
			x, y := a.files[i].info, a.files[j].info
			if x == nil || y == nil || x.ModTime().Equal(y.ModTime()) {
				return a.files[i].name < a.files[j].name
			}
			return x.ModTime().Before(y.ModTime())
		}
	}
	if q.reverse {
		forward := less
		less = func(i, j int) bool { return forward(j, i) }
	}
	sort.Slice(a.files, less)
}

// searcher is a query under way. Its file method is called at once by several
// goroutines.
type searcher struct {
	*query
	ctx    context.Context
	unread *unreadable
	m      *matcher
	pool   sync.Pool // of *worker

	mu    sync.Mutex
	files []found
	kept  int                    // hits held in files
	last  atomic.Pointer[string] // no file after this one will be shown

	lines, searched, binary atomic.Int64
}

// worker is what one goroutine needs.
type worker struct {
	buf  []byte
	scan *scanner
}

func (s *searcher) worker() *worker {
	w := &worker{buf: make([]byte, 0, 64<<10)}
	if s.m != nil {
		w.scan = s.m.scanner()
	}
	return w
}

func (s *searcher) file(f *reach.Folder, e reach.Entry) error {
	if e.Type&fs.ModeSymlink != 0 {
		return nil
	}
	out := found{name: f.Name + "/" + e.Name}
	if s.sortBy == "modified" {
		out.info, _ = f.Info(e.Name)
	}
	if s.mode == listFiles {
		s.add(out)
		return nil
	}
	if err := s.ctx.Err(); err != nil {
		return err
	}
	w := s.pool.Get().(*worker)
	defer s.pool.Put(w)
	data, more, err := f.ReadFile(e.Name, w.buf, wholeFile)
	if cap(data) > cap(w.buf) {
		w.buf = data[:0]
	}
	if err != nil {
		s.unread.note(out.name, err)
		return nil
	}
	s.searched.Add(1)
	c := collector{searcher: s, scan: w.scan, out: &out, hide: !s.shows(out.name)}
	if more {
		file, err := f.Open(e.Name)
		if err == nil {
			defer file.Close()
			err = c.stream(file, data[:min(len(data), textfile.HeadSize)])
		}
		if err != nil {
			s.unread.note(out.name, err)
			return s.ctx.Err()
		}
	} else {
		c.whole(data)
	}
	if out.lines > 0 != (s.mode == showFilesWithout) && !c.skipped {
		s.add(out)
	}
	return nil
}

// add keeps what a file gave. So many hits may come together that only those
// of the files that will be shown first are kept.
func (s *searcher) add(f found) {
	s.lines.Add(int64(f.lines))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = append(s.files, f)
	s.kept += len(f.hits)
	if s.keep == 0 || s.kept < 4*s.keep {
		return
	}
	s.sort(&answer{files: s.files})
	s.kept = 0
	for i := range s.files {
		if s.kept >= s.keep {
			s.files[i].hits = nil
		} else if s.kept += len(s.files[i].hits); s.kept >= s.keep && s.sortBy == "" && !s.reverse {
			s.last.Store(&s.files[i].name)
		}
	}
}

// shows reports whether hits of a file can still be among those shown.
func (s *searcher) shows(name string) bool {
	last := s.last.Load()
	return last == nil || name <= *last
}
