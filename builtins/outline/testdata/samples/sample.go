// Package sample is a sample.
package sample

import (
	"context"
	_ "embed"
	str "strings"
)

import "fmt"

// Number is a number.
type Number interface {
	~int | ~float64
	// String says it.
	String() string
	fmt.Stringer
}

type (
	// Pair holds two.
	Pair[K comparable, V any] struct {
		// Key is first.
		Key  K
		A, B V // both
		*str.Builder
		Nested struct {
			Deep int
		}
	}
	Alias             = Pair[int, string]
	Set[T comparable] map[T]struct{}
)

// The limits.
const (
	// Low is low.
	Low       = iota
	High, Top = 1, 2
)

const single = 1

var (
	x, y int
	// z is last.
	z = func() int { return 1 }
)

//go:embed a.txt
var text string

// Read reads.
// It goes on.
func (p *Pair[K, V]) Read(ctx context.Context) (n int, err error) {
	type local struct{}
	for i := range 10 {
		_ = i
	}
	return
}

//export elf_call
func Map[T, U any](s []T, f func(T) U) (out []U) { return }

func init() {}
