package image

import "bytes"

// Memory is a linear memory: its size in bytes, and what of it is not zero.
// A guest's memory is mostly zero, and nobody has to touch that.
type Memory struct {
	Size int
	Runs []Run // by address; none reaches into another, or beyond the end
}

// Run is a stretch of a memory.
type Run struct {
	At    int
	Bytes []byte
}

// runPage is how much has to be zero at a time to be left out.
const runPage = 4096

// memoryOf copies what is not zero.
func memoryOf(view []byte) Memory {
	m := Memory{Size: len(view)}
	var zero [runPage]byte
	empty := func(o int) bool {
		p := view[o:min(o+runPage, len(view))]
		return bytes.Equal(p, zero[:len(p)])
	}
	for start := 0; start < len(view); {
		if empty(start) {
			start += runPage
			continue
		}
		end := start
		for end < len(view) && !empty(end) {
			end += runPage
		}
		m.Runs = append(m.Runs, Run{start, bytes.Clone(view[start:min(end, len(view))])})
		start = end
	}
	return m
}
