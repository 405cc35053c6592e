//go:build wasip1

// Command elf is the guest of the benchmarks: a tool that decodes its
// arguments and answers with a part of them, and kernels to stop.
package main

import (
	"context"

	"github.com/elfhost/elfhost/pdk"
)

type in struct {
	Text string `json:"text"`
}

func init() {
	pdk.Tool(pdk.Spec{Name: "echo", Description: "Answers with the text."}, func(_ context.Context, a in) (string, error) { return a.Text, nil })
	pdk.Tool(pdk.Spec{Name: "spin", Description: "Never ends."}, func(context.Context, in) (string, error) {
		n := uint32(1)
		for n != 0 {
			n = n*1664525 | 1
		}
		return "", nil
	})
}

func main() { pdk.Main() }
