package meter

import (
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// Costs in units of fuel.
const (
	straight  = 250  // straight code is charged after this much
	trivial   = 64   // functions up to this cost are charged by their callers
	hostCall  = 32   // a call of a host function, beside what that counts itself
	manyTurns = 8    // a loop with more places that go back is charged at its head
	shortBulk = 4096 // bulk operations of a constant length below this are part of the path
)

// plan is what the survey of one body found. Positions are offsets in the code.
type plan struct {
	loops   []loopPlan
	turns   []int        // weight of each branch to a loop, in order; br_table excepted
	charges map[int]int  // weights in straight code
	fixed   map[int]bool // bulk operations whose constant length is in the path
	bulk    int          // those charged by a length that is known when they run
	entry   int          // the longest way from the last charge to an exit
}

// loopPlan says how one loop is charged.
type loopPlan struct {
	turns  int  // places that branch to the head
	head   bool // charge at the head instead of there
	weight int  // of a charge at the head
}

// costs holds what calls cost their caller: the cost of a trivial function,
// zero for one that charges itself. Callees are surveyed before callers, so it
// is complete where it is read.
type costs struct {
	imported uint32
	free     []int    // by function
	indirect []int    // by kind of type: the dearest trivial function that may be called
	canon    []uint32 // the kind of each type
}

// surveyor finds, in one pass, the longest path to each instruction since the
// last charge. Only forward branches make paths: a branch back to a loop is a
// charge. What was spent before a loop is not charged at its turns: it is
// carried around the loop and added where control leaves it.
type surveyor struct {
	plan
	*costs
	frames []frame
	spent  int  // the longest path to here
	dead   bool // no path leads here
	length int64
}

// frame is an open block.
type frame struct {
	op      wasmbin.Op
	exit    int  // the longest path to its end, branches included
	reached bool // there is one
	start   int  // of an if: the path to its condition
	unmet   bool // of an if: there is none
	carried int  // of a loop: the path to its head
	total   int  // carried by this frame and those around it
	loop    int  // of a loop: its index in plan.loops
}

func survey(b wasmbin.Body, c *costs) (*plan, error) {
	s := &surveyor{costs: c, plan: plan{charges: map[int]int{}, fixed: map[int]bool{}}}
	s.push(frame{op: wasmbin.OpBlock})
	scan := b.Scan()
	for scan.Next() {
		in := &scan.In
		if s.spent >= straight && !s.dead {
			s.charges[in.Start] = s.spent
			s.spent = 0
		}
		s.spent++
		s.instruction(in)
		if s.length = -1; in.Op == wasmbin.OpI32Const {
			s.length = int64(uint32(in.Value))
		}
	}
	return &s.plan, scan.Err()
}

func (s *surveyor) instruction(in *wasmbin.Instr) {
	switch in.Op {
	case wasmbin.OpBlock, wasmbin.OpIf:
		s.push(frame{op: in.Op, start: s.spent, unmet: s.dead})
	case wasmbin.OpLoop:
		s.push(frame{op: in.Op, carried: s.spent, loop: len(s.loops)})
		// A branch with operands cannot be moved into a block of its own.
		s.loops = append(s.loops, loopPlan{head: in.Typed})
		s.spent = 0
	case wasmbin.OpElse:
		f := &s.frames[len(s.frames)-1]
		s.arrive(f, 0)
		f.op = wasmbin.OpElse
		s.spent, s.dead = f.start, f.unmet
	case wasmbin.OpEnd:
		s.end()
	case wasmbin.OpBr:
		s.branch(in.X, true)
		s.dead = true
	case wasmbin.OpBrIf:
		s.branch(in.X, true)
	case wasmbin.OpBrTable:
		for l := range in.Targets() {
			s.branch(l, false)
		}
		s.dead = true
	case wasmbin.OpReturn:
		s.branch(uint32(len(s.frames)-1), true)
		s.dead = true
	case wasmbin.OpUnreachable:
		s.dead = true
	case wasmbin.OpCall:
		if in.X < s.imported {
			s.spent += hostCall
		} else {
			s.spent += s.free[in.X]
		}
	case wasmbin.OpCallIndirect:
		s.spent += s.indirect[s.canon[in.X]]
	default:
		s.lengthy(in)
	}
}

// lengthy sorts bulk operations by whether their length is a constant.
func (s *surveyor) lengthy(in *wasmbin.Instr) {
	switch by := unitsOf(in.Op); {
	case by.shift == 0:
	case by.constant && s.length >= 0 && s.length < shortBulk:
		s.fixed[in.Start] = true
		s.spent += int(s.length) >> by.shift
	default:
		s.bulk++
	}
}

func (s *surveyor) push(f frame) {
	if n := len(s.frames); n > 0 {
		f.total = s.frames[n-1].total
	}
	f.total += f.carried
	s.frames = append(s.frames, f)
}

// arrive records a path to the end of f.
func (s *surveyor) arrive(f *frame, extra int) {
	if !s.dead {
		f.exit = max(f.exit, s.spent+extra)
		f.reached = true
	}
}

// branch follows a branch to label l. own says that it can be given a charge
// of its own, which a br_table cannot.
func (s *surveyor) branch(l uint32, own bool) {
	i := len(s.frames) - 1 - int(l)
	f := &s.frames[i]
	carried := s.frames[len(s.frames)-1].total - f.total // by the loops that are left
	if f.op != wasmbin.OpLoop {
		s.arrive(f, carried)
		return
	}
	p := &s.loops[f.loop]
	p.turns++
	p.weight = max(p.weight, s.spent+carried)
	p.head = p.head || !own || p.turns > manyTurns
	if own {
		s.turns = append(s.turns, s.spent+carried)
	}
}

func (s *surveyor) end() {
	f := s.frames[len(s.frames)-1]
	s.arrive(&f, f.carried)
	if f.op == wasmbin.OpIf && !f.unmet { // no else: the condition may have been false
		f.exit, f.reached = max(f.exit, f.start), true
	}
	s.frames = s.frames[:len(s.frames)-1]
	s.spent, s.dead = f.exit, !f.reached
	if len(s.frames) == 0 {
		s.entry = f.exit
	}
}

// units says how a bulk operation's length becomes fuel: length >> shift, or
// length << -shift. A zero shift means that the operation is not charged.
type units struct {
	shift    int
	constant bool // a short constant length may be charged with the path
}

func unitsOf(op wasmbin.Op) units {
	switch op {
	case wasmbin.OpMemoryCopy, wasmbin.OpMemoryFill, wasmbin.OpMemoryInit: // 64 bytes
		return units{6, true}
	case wasmbin.OpTableCopy, wasmbin.OpTableFill, wasmbin.OpTableInit: // 8 entries of 8 bytes
		return units{3, true}
	case wasmbin.OpTableGrow:
		return units{3, false}
	case wasmbin.OpMemoryGrow: // pages of 64 KiB
		return units{-10, false}
	}
	return units{}
}
