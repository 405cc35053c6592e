package policy

import (
	"time"

	"github.com/elfhost/elfhost/abi"
)

// Limits are those of one call: what was asked for, the defaults where nothing
// was, and never more than any layer's ceiling.
func (p *Policy) Limits(want abi.Limits) abi.Limits {
	d := abi.DefaultLimits()
	l := meetLimits(want, d, func(a, b int64) int64 {
		if a > 0 {
			return a
		}
		return b
	})
	if p != nil {
		for _, c := range p.layers {
			l = meetLimits(l, c.Limits, least[int64])
		}
	}
	return l
}

// Bounds are the ceilings of all layers alone; a zero field bounds nothing.
func (p *Policy) Bounds() abi.Limits {
	var l abi.Limits
	if p != nil {
		for _, c := range p.layers {
			l = meetLimits(l, c.Limits, least[int64])
		}
	}
	return l
}

// least is the smaller of two bounds, where zero is none.
func least[T int64 | time.Duration](a, b T) T {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

func meetLimits(a, b abi.Limits, f func(a, b int64) int64) abi.Limits {
	return abi.Limits{
		Memory:    f(a.Memory, b.Memory),
		Time:      time.Duration(f(int64(a.Time), int64(b.Time))),
		Fuel:      f(a.Fuel, b.Fuel),
		HostCalls: int(f(int64(a.HostCalls), int64(b.HostCalls))),
		Output:    f(a.Output, b.Output),
		LogLines:  int(f(int64(a.LogLines), int64(b.LogLines))),
		LogLine:   int(f(int64(a.LogLine), int64(b.LogLine))),
		Requests:  int(f(int64(a.Requests), int64(b.Requests))),
		BytesIn:   f(a.BytesIn, b.BytesIn),
		BytesOut:  f(a.BytesOut, b.BytesOut),
		Parallel:  int(f(int64(a.Parallel), int64(b.Parallel))),
	}
}
