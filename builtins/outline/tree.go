package outline

// node is one node of a syntax tree.
type node struct {
	kind, field uint16 // into the tree's names; field 0 is none
	flags       uint8
	start, end  uint32 // bytes
	row, endRow uint32 // lines, from 0
	depth       uint16 // below the root

	parent, prev, next int32 // -1: none
}

// The flags of a node.
const (
	flagNamed = 1 << iota
	flagError // it is an error, or stands for a token that is missing
)

// tree is the part of a syntax tree that an outline looks at: what lies inside
// nodes that are not open for the language is left out. It is a slice in
// pre-order, whichever parser made it, so that one set of rules serves all.
type tree struct {
	nodes  []node
	kinds  []string // names of the grammar, by number
	fields []string
	src    []byte
	bad    bool // somewhere, perhaps in what was left out, is an error
	// badRow is the line, from 0, of the first error that was looked at.
	badRow uint32
}

// Bounds of a walk. Real files have some ten levels of declarations; more
// nodes than the last are not worth an outline.
const (
	maxDepth = 100
	maxNodes = 2 << 20
)

// link sets parents and siblings from the depths, and drops what a hostile
// parser made up: positions outside the text, impossible depths.
func (t *tree) link() {
	var path [maxDepth + 1]int32
	last := -1 // depth of the node before
	size := uint32(len(t.src))
	kept := t.nodes[:0]
	for _, n := range t.nodes {
		if int(n.depth) > min(last+1, maxDepth) || n.depth == 0 && last >= 0 ||
			n.start > n.end || n.end > size || int(n.kind) >= len(t.kinds) || int(n.field) >= len(t.fields) {
			continue
		}
		i := int32(len(kept))
		n.parent, n.prev, n.next = -1, -1, -1
		if n.depth > 0 {
			n.parent = path[n.depth-1]
		}
		if int(n.depth) <= last && n.depth > 0 {
			n.prev = path[n.depth]
			kept[n.prev].next = i
		}
		path[n.depth] = i
		last = int(n.depth)
		if n.flags&flagError != 0 && (!t.bad || t.badRow > n.row) {
			t.bad, t.badRow = true, n.row
		}
		kept = append(kept, n)
	}
	t.nodes = kept
}

// marked reports whether an error is among the nodes.
func (t *tree) marked() bool {
	for i := range t.nodes {
		if t.nodes[i].flags&flagError != 0 {
			return true
		}
	}
	return false
}

// first is the first child of n, -1 when there is none.
func (t *tree) first(n int32) int32 {
	if c := n + 1; int(c) < len(t.nodes) && t.nodes[c].parent == n {
		return c
	}
	return -1
}

func (t *tree) kind(n int32) string { return t.kinds[t.nodes[n].kind] }

func (t *tree) text(n int32) string { return string(t.src[t.nodes[n].start:t.nodes[n].end]) }

// child finds the first child in a field.
func (t *tree) child(n int32, field string) int32 {
	for c := t.first(n); c >= 0; c = t.nodes[c].next {
		if f := t.nodes[c].field; f != 0 && t.fields[f] == field {
			return c
		}
	}
	return -1
}

// find finds the first child of one of the kinds.
func (t *tree) find(n int32, kinds ...string) int32 {
	for c := t.first(n); c >= 0; c = t.nodes[c].next {
		k := t.kind(c)
		for _, want := range kinds {
			if k == want {
				return c
			}
		}
	}
	return -1
}

// What a walk does at a node of a kind.
const (
	walkOpen   = 1 << iota // go into it
	walkBody               // go into it where its parent holds declarations
	walkHolder             // its bodies hold declarations
)

// walker decides which nodes are open, by the number of their kind.
type walker []uint8

func (w walker) open(kind, parent uint16) bool {
	var k, p uint8
	if int(kind) < len(w) {
		k = w[kind]
	}
	if int(parent) < len(w) {
		p = w[parent]
	}
	return k&walkOpen != 0 || k&walkBody != 0 && p&walkHolder != 0
}
