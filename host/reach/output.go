package reach

import (
	"os"
	"sync"
	"unicode/utf8"
)

// output collects what a program writes: its head and its tail, the whole in a
// log file up to a cap, and every piece for a watcher.
type output struct {
	mu     sync.Mutex
	half   int
	head   []byte
	tail   []byte // up to 2×half, cut down when it is full
	cut    bool
	total  int64
	log    *os.File
	logCap int64
	logged int64
	stream func([]byte)
	full   func() // called once, at the log's cap
}

func newOutput(p Program, full func()) (*output, error) {
	o := &output{half: p.Output / 2, logCap: p.LogCap, stream: p.Stream, full: full}
	if p.Output == 0 {
		o.half = defaultOutput / 2
	}
	if o.logCap == 0 {
		o.logCap = defaultLogCap
	}
	if p.Log != "" {
		var err error
		if o.log, err = os.OpenFile(p.Log, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// add takes a piece of whole runes.
func (o *output) add(b []byte) {
	if len(b) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total += int64(len(b))
	if o.stream != nil {
		o.stream(b)
	}
	o.write(b)
	if room := o.half - len(o.head); room > 0 && !o.cut {
		n := min(room, len(b))
		o.head = append(o.head, b[:n]...)
		b = b[n:]
	}
	if len(b) > 2*o.half {
		o.cut = true
		b = b[len(b)-2*o.half:]
	}
	o.tail = append(o.tail, b...)
	if len(o.tail) > 2*o.half {
		o.cut = true
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-o.half:]...)
	}
}

func (o *output) write(b []byte) {
	if o.log == nil || o.logged >= o.logCap {
		return
	}
	n, err := o.log.Write(b[:min(int64(len(b)), o.logCap-o.logged)])
	o.logged += int64(n)
	if err != nil { // a full disk ends the log, not the program's answer
		o.logged = o.logCap
	}
	if o.logged >= o.logCap && o.full != nil {
		go o.full()
		o.full = nil
	}
}

// result is what is kept; the cuts are at rune boundaries.
func (o *output) result() (text []byte, head int, truncated bool, total int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h, t := o.head, o.tail
	if len(t) > o.half {
		t = t[len(t)-o.half:]
		o.cut = true
	}
	if o.cut {
		h = h[:len(h)-incomplete(h)]
		for len(t) > 0 && !utf8.RuneStart(t[0]) {
			t = t[1:]
		}
	}
	return append(append([]byte(nil), h...), t...), len(h), o.cut, o.total
}

func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.log != nil {
		o.log.Close()
		o.log = nil
	}
	o.stream = nil
}

// incomplete is the number of bytes at the end of b that begin a rune and do
// not end it.
func incomplete(b []byte) int {
	for n := 1; n <= min(utf8.UTFMax-1, len(b)); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// decoder keeps the runes of one stream whole: the other stream's bytes never
// come between the bytes of one.
type decoder struct {
	out  *output
	held []byte
}

func (d *decoder) Write(b []byte) (int, error) {
	text := append(d.held, b...)
	n := incomplete(text)
	d.out.add(text[:len(text)-n])
	d.held = append([]byte(nil), text[len(text)-n:]...)
	return len(b), nil
}

func (d *decoder) flush() {
	d.out.add(d.held)
	d.held = nil
}
