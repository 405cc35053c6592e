package search

import (
	"errors"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// A dfa finds lines that contain a match. It is built from the program that
// regexp/syntax compiles, one state at a time as text asks for it, the way RE2
// does: time is linear in the text whatever the pattern, and memory is bounded
// because the states are thrown away when there are too many.
//
// It works on lines: a newline ends every match, $ and \z hold before it, and
// ^ and \A after it. Where the match lies in its line is for regexp to say.
//
// A dfa is for one goroutine; its program is shared.
type dfa struct {
	*program
	trans  []int32 // rows of stride: class → row of the next state; 0 is not known yet
	states []state
	ids    map[string]int32
	start  int32
	resets int
	work   closure
	key    []byte
}

const (
	dfaStates = 4000
	dfaResets = 10 // after so many the pattern is too much for states
	matched   = 1  // in place of a row: this line matches
)

var errTooManyStates = errors.New("too many states")

// state is a set of instructions that wait for the next character, before the
// empty-width assertions there are looked at, and the character before them.
type state struct {
	insts []uint32
	prev  rune // -1: the line's start
}

func newDFA(p *program) *dfa {
	d := &dfa{program: p}
	d.work.mark = make([]uint32, len(p.insts))
	d.clear()
	return d
}

func (d *dfa) clear() {
	d.trans, d.states, d.ids = d.trans[:0], d.states[:0], make(map[string]int32)
	d.add(state{})           // 0: not known
	d.add(state{prev: '\n'}) // 1: matched
	d.start = d.add(state{prev: -1})
}

func (d *dfa) add(s state) int32 {
	id := int32(len(d.trans))
	if len(d.states) < 2 {
		id = int32(len(d.states)) // not states: answers
	}
	d.states = append(d.states, s)
	d.trans = append(d.trans, make([]int32, d.stride)...)
	return id
}

// find returns an offset in the first matching line at or after from, which
// must be the start of a line; -1 when there is none.
func (d *dfa) find(text []byte, from int) (int, error) {
	trans, ascii := d.trans, &d.ascii
	s := int(d.start) // of the state's row in trans
	for i := from; i < len(text); {
		c := text[i]
		width := 1
		var class int
		if c < utf8.RuneSelf {
			class = int(ascii[c])
		} else {
			var r rune
			r, width = utf8.DecodeRune(text[i:])
			class = int(d.class(r))
		}
		next := trans[s+class]
		if next <= matched {
			if next == 0 {
				var err error
				if next, err = d.step(s, class); err != nil {
					return -1, err
				}
				trans = d.trans
			}
			if next == matched {
				return i, nil
			}
		}
		s = int(next)
		i += width
	}
	next := trans[s+d.stride-1]
	if next == 0 {
		var err error
		if next, err = d.step(s, d.stride-1); err != nil {
			return -1, err
		}
	}
	if next == matched && len(text) > from && text[len(text)-1] != '\n' {
		return len(text), nil
	}
	return -1, nil
}

// step computes the transition from the state whose row is at s.
func (d *dfa) step(s, class int) (int32, error) {
	from := d.states[s/d.stride]
	if len(d.states) >= dfaStates {
		if d.resets++; d.resets > dfaResets {
			return 0, errTooManyStates
		}
		initial := s == int(d.start)
		d.clear()
		if s = int(d.start); !initial {
			s = int(d.intern(from))
		}
	}
	next := d.target(from, uint8(class))
	d.trans[s+class] = next
	return next, nil
}

func (d *dfa) target(s state, class uint8) int32 {
	after := rune(-1)
	if int(class) < d.stride-1 && class != d.newline {
		after = d.reps[class]
	}
	before := s.prev
	c := &d.work
	c.begin()
	empty := syntax.EmptyOpContext(before, after)
	for _, pc := range s.insts {
		d.close(pc, empty)
	}
	d.close(d.first, empty) // a match may begin anywhere
	if c.match {
		return matched
	}
	if class == d.newline {
		return d.start
	}
	if after < 0 {
		return d.start // the text's end without a match; any state but matched
	}
	out := c.next[:0]
	for _, pc := range c.list {
		if d.insts[pc].MatchRune(after) {
			out = append(out, d.insts[pc].Out)
		}
	}
	slices.Sort(out)
	c.next = slices.Compact(out)
	prev := rune(' ')
	if d.wordy && syntax.IsWordChar(after) {
		prev = 'a'
	}
	return d.intern(state{c.next, prev})
}

func (d *dfa) intern(s state) int32 {
	d.key = append(d.key[:0], byte(s.prev))
	for _, pc := range s.insts {
		d.key = append(d.key, byte(pc), byte(pc>>8), byte(pc>>16))
	}
	if id, ok := d.ids[string(d.key)]; ok {
		return id
	}
	id := d.add(state{slices.Clone(s.insts), s.prev})
	d.ids[string(d.key)] = id
	return id
}

// closure collects what can be reached without reading a character.
type closure struct {
	mark  []uint32 // generation in which an instruction was reached
	gen   uint32
	list  []uint32 // instructions that read one
	next  []uint32
	stack []uint32
	match bool
}

func (c *closure) begin() {
	c.gen++
	if c.gen == 0 {
		clear(c.mark)
		c.gen = 1
	}
	c.list, c.match = c.list[:0], false
}

func (d *dfa) close(pc uint32, empty syntax.EmptyOp) {
	c := &d.work
	c.stack = append(c.stack[:0], pc)
	for len(c.stack) > 0 {
		pc := c.stack[len(c.stack)-1]
		c.stack = c.stack[:len(c.stack)-1]
		if c.mark[pc] == c.gen {
			continue
		}
		c.mark[pc] = c.gen
		in := &d.insts[pc]
		switch in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			c.stack = append(c.stack, in.Arg, in.Out)
		case syntax.InstCapture, syntax.InstNop:
			c.stack = append(c.stack, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^empty == 0 {
				c.stack = append(c.stack, in.Out)
			}
		case syntax.InstMatch:
			c.match = true
		case syntax.InstFail:
		default:
			c.list = append(c.list, pc)
		}
	}
}
