// Package bench measures the house against peers in the same run, and prints
// what it finds: a line for people, and one for machines, a figure:
//
//	figure<TAB>name<TAB>value<TAB>goal<TAB>ok|short
package bench

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"
)

// Figure prints a value that should be at most goal, and reports whether it is.
func Figure(w io.Writer, name string, value, goal float64) bool {
	return figure(w, name, value, "<=", goal, value <= goal)
}

// Least prints a value that should be at least goal, and reports whether it is.
func Least(w io.Writer, name string, value, goal float64) bool {
	return figure(w, name, value, ">=", goal, value >= goal)
}

// Skipped prints a figure that could not be measured here, and why.
func Skipped(w io.Writer, name, goal, why string) {
	fmt.Fprintf(w, "%-44s  skipped  goal %-8s %s\n", name, goal, why)
	fmt.Fprintf(w, "figure\t%s\tskipped\t%s\tskipped: %s\n", name, goal, why)
}

func figure(w io.Writer, name string, value float64, sign string, goal float64, ok bool) bool {
	word := "ok"
	if !ok {
		word = "short"
	}
	g := sign + strconv.FormatFloat(goal, 'g', 4, 64)
	fmt.Fprintf(w, "%-44s %8.3g  goal %-8s %s\n", name, value, g, word)
	fmt.Fprintf(w, "figure\t%s\t%s\t%s\t%s\n", name, strconv.FormatFloat(value, 'g', 4, 64), g, word)
	return ok
}

// Times runs the functions in turn, rounds times, n calls a round, and returns
// the median time of one call of each. Taking turns lets what disturbs the
// machine disturb all of them.
func Times(rounds, n int, fs ...func()) []time.Duration {
	took := make([][]time.Duration, len(fs))
	for range rounds {
		for i, f := range fs {
			start := time.Now()
			for range n {
				f()
			}
			took[i] = append(took[i], time.Since(start)/time.Duration(n))
		}
	}
	medians := make([]time.Duration, len(fs))
	for i, t := range took {
		slices.Sort(t)
		medians[i] = t[len(t)/2]
	}
	return medians
}

// Median is the middle of some durations.
func Median(of []time.Duration) time.Duration {
	of = slices.Clone(of)
	slices.Sort(of)
	return of[len(of)/2]
}
