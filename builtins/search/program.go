package search

import (
	"regexp/syntax"
	"slices"
	"sort"
	"unicode"
	"unicode/utf8"
)

// program is the immutable part: the instructions and the classes of runes
// that no instruction tells apart.
type program struct {
	insts   []syntax.Inst
	first   uint32
	ranges  []rune  // starts of the intervals, ascending
	classOf []uint8 // of each interval
	ascii   [utf8.RuneSelf]uint8
	reps    []rune // one rune of each class
	stride  int
	newline uint8
	wordy   bool // \b or \B is in it: what is a word matters
	invalid uint8
}

// maxClasses lets a class be a byte. The last one stands for the text's end.
const maxClasses = 250

func newProgram(re *syntax.Regexp) (*program, error) {
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return nil, err
	}
	p := &program{insts: prog.Inst, first: uint32(prog.Start)}
	cuts := []rune{0, '\n', '\n' + 1, utf8.RuneError, utf8.RuneError + 1, '0', '9' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1}
	for i := range p.insts {
		in := &p.insts[i]
		cuts = appendCuts(cuts, in)
		const word = syntax.EmptyWordBoundary | syntax.EmptyNoWordBoundary
		p.wordy = p.wordy || in.Op == syntax.InstEmptyWidth && syntax.EmptyOp(in.Arg)&word != 0
	}
	slices.Sort(cuts)
	p.ranges = slices.Compact(cuts)
	return p, p.classify()
}

func appendCuts(cuts []rune, in *syntax.Inst) []rune {
	switch in.Op {
	case syntax.InstRune, syntax.InstRune1:
		if len(in.Rune) == 1 {
			r := in.Rune[0]
			cuts = append(cuts, r, r+1)
			if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
				for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
					cuts = append(cuts, f, f+1)
				}
			}
			return cuts
		}
		for j := 0; j+1 < len(in.Rune); j += 2 {
			cuts = append(cuts, in.Rune[j], in.Rune[j+1]+1)
		}
	}
	return cuts
}

// classify merges intervals that all instructions treat alike.
func (p *program) classify() error {
	ids := make(map[string]uint8)
	var sig []byte
	for _, r := range p.ranges {
		sig = sig[:0]
		sig = append(sig, p.kindOf(r))
		for i := range p.insts {
			switch p.insts[i].Op {
			case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
				if p.insts[i].MatchRune(r) {
					sig = append(sig, byte(i), byte(i>>8), byte(i>>16))
				}
			}
		}
		id, ok := ids[string(sig)]
		if !ok {
			if len(ids) == maxClasses {
				return errTooManyStates
			}
			id = uint8(len(ids))
			ids[string(sig)] = id
			p.reps = append(p.reps, r)
		}
		p.classOf = append(p.classOf, id)
	}
	for r := rune(0); r < utf8.RuneSelf; r++ {
		p.ascii[r] = p.class(r)
	}
	p.newline, p.invalid = p.ascii['\n'], p.class(utf8.RuneError)
	p.stride = len(ids) + 1
	return nil
}

// kindOf tells apart what the empty-width assertions tell apart.
func (p *program) kindOf(r rune) byte {
	switch {
	case r == '\n':
		return 1
	case p.wordy && syntax.IsWordChar(r):
		return 2
	}
	return 0
}

func (p *program) class(r rune) uint8 {
	i := sort.Search(len(p.ranges), func(i int) bool { return p.ranges[i] > r }) - 1
	return p.classOf[i]
}
