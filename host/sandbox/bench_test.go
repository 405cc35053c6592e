package sandbox_test

import (
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox"
)

// BenchmarkCall is one isolated call of a standard-Go guest, reset included.
func BenchmarkCall(b *testing.B) {
	p := load(b, &sandbox.Loader{}, guest(b, "probe"), abi.Manifest{})
	if err := p.Warm(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := p.Tools()[0].Call(b.Context(), host.Call{Args: []byte(`{"do":"echo","a":"x"}`)}); err != nil {
			b.Fatal(err)
		}
	}
}
