package meter_test

import (
	"testing"

	"github.com/elfhost/elfhost/host/sandbox/internal/wasmtest"
	"github.com/elfhost/elfhost/host/sandbox/meter"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// dispatched is the shape that Go gives a function: local 1 chooses the block,
// parameter 0 counts the turns down, and local 2 notes the way. Blocks 0 and 1
// follow their label, block 2 ends the function.
func dispatched(block0, block1 []byte) []byte {
	return wasmtest.Cat(
		[]byte{0x03, 0x40, 0x02, 0x40, 0x02, 0x40, 0x02, 0x40, 0x20, 1, 0x0e, 2, 0, 1, 2, 0x0b},
		block0, []byte{0x0b}, block1, []byte{0x0b}, note(4), []byte{0x20, 2, 0x0f, 0x0b, 0x00})
}

// note appends a digit to the way.
func note(digit byte) []byte { return []byte{0x20, 2, 0x41, 8, 0x6c, 0x41, digit, 0x6a, 0x21, 2} }

// jump goes to the block n: l blocks are open up to the loop.
func jump(n, local, l byte) []byte { return []byte{0x41, n, 0x21, local, 0x0c, l} }

// once wraps code so that it runs while there are turns left.
func once(code []byte) []byte {
	return wasmtest.Cat([]byte{0x20, 0, 0x04, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x21, 0}, code, []byte{0x0b})
}

// A jump ahead becomes a branch to the block that ends there; all others stay.
func TestThread(t *testing.T) {
	for _, c := range []struct {
		name           string
		block0, block1 []byte
		shorter        int // jumps that no longer go through the loop
	}{
		{"ahead", wasmtest.Cat(note(1), jump(2, 1, 2)), note(2), 1},
		{"ahead by the default", wasmtest.Cat(note(1), jump(9, 1, 2)), note(2), 1},
		{"to the next", wasmtest.Cat(note(1), jump(1, 1, 2)), note(2), 1},
		{"ahead in an if", wasmtest.Cat(note(1), once(jump(2, 1, 3))), note(2), 1},
		{"behind", wasmtest.Cat(note(1)), wasmtest.Cat(note(2), once(jump(0, 1, 2))), 0},
		{"to itself", note(1), wasmtest.Cat(note(2), once(jump(1, 1, 2))), 0},
		{"ahead and behind", wasmtest.Cat(note(1), once(jump(2, 1, 3)), note(3)), wasmtest.Cat(note(2), once(jump(0, 1, 2))), 1},
		{"by another local", wasmtest.Cat(note(1), once(jump(1, 3, 3))), note(2), 0},
		{"not to the loop", wasmtest.Cat(note(1), jump(2, 1, 1)), note(2), 0},
		{"not right before", wasmtest.Cat(note(1), []byte{0x41, 2, 0x21, 1, 0x01, 0x0c, 2}), note(2), 0},
	} {
		wasm := wasmtest.Program([]wasmtest.Func{{Export: "f", Params: []byte{0x7f}, Results: []byte{0x7f}, Locals: []byte{1, 3, 0x7f}, Code: dispatched(c.block0, c.block1)}})
		m := checked(t, wasm)
		short := 0
		var code []byte
		for b, err := range m.Bodies() {
			if err != nil {
				t.Fatal(err)
			}
			threaded, err := meter.Thread(b)
			if err != nil {
				t.Fatal(err)
			}
			for i := range b.Code {
				if b.Code[i] != threaded.Code[i] { // labels have one byte here
					short++
				}
			}
			code = threaded.Append(code)
		}
		if short != c.shorter {
			t.Errorf("%s: %d jumps are shorter, want %d", c.name, short, c.shorter)
		}
		out := *m
		out.Set(wasmbin.CodeSection, m.Count(wasmbin.CodeSection), code)
		was, is := start(t, wasm), start(t, out.Encode())
		for turns := range uint64(5) {
			if want, got := plain(t, was, "f", turns), plain(t, is, "f", turns); got != want {
				t.Errorf("%s, %d turns: went %o, want %o", c.name, turns, got, want)
			}
		}
	}
}
