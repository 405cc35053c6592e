package files

import "bytes"

// Bounds of the search for the nearest window.
const (
	nearLines   = 200_000 // lines of the file that are looked at
	nearOld     = 200     // lines of the old text that vote
	nearVotes   = 1 << 20 // votes in all
	nearShown   = 12      // lines shown
	nearWorth   = 25      // percent of likeness of a window below which nothing is shown
	nearLine    = 40      // the same of a line that may stand for the window
	nearSources = 64      // windows that are measured
)

// nearest returns the window of text that old resembles most, and its first
// line's number. It is nil when nothing is alike enough to help.
//
// Lines of old that occur in the file vote for where old would begin; the
// windows with most votes are then measured. When no line occurs, the file's
// lines are compared with the longest line of old.
func nearest(text, old []byte) ([][]byte, int) {
	have := bytes.Split(text, []byte{'\n'})
	have = have[:min(len(have), nearLines)]
	want := bytes.Split(bytes.TrimRight(old, "\n"), []byte{'\n'})
	want = want[:min(len(want), nearOld)]
	starts := vote(have, want)
	if len(starts) == 0 {
		starts = byLongest(have, want)
	}
	best, from := 0, 0
	for _, s := range starts {
		if score := windowScore(have, want, s); score > best {
			best, from = score, s
		}
	}
	if best < nearWorth {
		return nil, 0
	}
	from = max(from, 0)
	return have[from:min(from+min(len(want), nearShown), len(have))], from + 1
}

func key(line []byte) string { return string(bytes.Join(bytes.Fields(line), []byte{' '})) }

// vote returns the most voted starts, at most nearSources of them.
func vote(have, want [][]byte) []int {
	where := make(map[string][]int, len(want))
	for i, line := range want {
		if k := key(line); len(k) > 2 {
			where[k] = append(where[k], i)
		}
	}
	votes := make(map[int]int)
	left := nearVotes
	for i, line := range have {
		for _, j := range where[key(line)] {
			votes[i-j]++
			left--
		}
		if left <= 0 {
			break
		}
	}
	return top(votes)
}

func byLongest(have, want [][]byte) []int {
	pivot := 0
	for i, line := range want {
		if len(bytes.TrimSpace(line)) > len(bytes.TrimSpace(want[pivot])) {
			pivot = i
		}
	}
	pairs := pairsOf(want[pivot])
	votes := make(map[int]int)
	for i, line := range have {
		if score := likeness(pairs, line); score >= nearLine {
			votes[i-pivot] = score
		}
	}
	return top(votes)
}

// top returns the keys with the highest values, at most nearSources.
func top(votes map[int]int) []int {
	var out []int
	for len(out) < nearSources && len(votes) > 0 {
		best, at := 0, 0
		for s, n := range votes {
			if n > best || n == best && s < at {
				best, at = n, s
			}
		}
		out = append(out, at)
		delete(votes, at)
		if len(out) > 0 && best == 0 {
			break
		}
		if len(votes) > 4096 { // a scan each: keep only what can still win
			for s, n := range votes {
				if n < best/2 {
					delete(votes, s)
				}
			}
			if len(votes) > 4096 {
				break
			}
		}
	}
	return out
}

// windowScore is the mean likeness of want's lines with the window's, in percent.
func windowScore(have, want [][]byte, start int) int {
	sum, weight := 0, 0
	for i, line := range want {
		w := min(len(bytes.TrimSpace(line)), 200) + 1
		weight += w
		if at := start + i; at >= 0 && at < len(have) {
			sum += w * likeness(pairsOf(line), have[at])
		}
	}
	return sum / max(weight, 1)
}

// pairsOf counts the byte pairs of a line without its white space.
func pairsOf(line []byte) map[[2]byte]int {
	pairs := make(map[[2]byte]int)
	each(line, func(p [2]byte) { pairs[p]++ })
	return pairs
}

func each(line []byte, visit func([2]byte)) {
	line = line[:min(len(line), 1000)]
	prev := byte(0)
	for _, c := range line {
		if c == ' ' || c == '\t' || c == '\r' {
			continue
		}
		visit([2]byte{prev, c})
		prev = c
	}
}

// likeness is the Dice coefficient of byte pairs, in percent.
func likeness(pairs map[[2]byte]int, line []byte) int {
	total := 0
	for _, n := range pairs {
		total += n
	}
	used := make(map[[2]byte]int)
	common, other := 0, 0
	each(line, func(p [2]byte) {
		other++
		if used[p] < pairs[p] {
			used[p]++
			common++
		}
	})
	if total+other == 0 {
		return 100
	}
	return 200 * common / (total + other)
}
