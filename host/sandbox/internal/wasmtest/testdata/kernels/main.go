//go:build wasip1

// The kernels as a standard-Go guest: work that the meter is measured on, and
// behaviour that the image and the pool are tested with.
package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	mrand "math/rand/v2"
	"os"
	"unsafe"
)

var buf [65536]byte

//go:wasmexport sha
func sha(n uint32) uint32 {
	s := sha256.New()
	for i := uint32(0); i < n; i++ {
		s.Write(buf[(i*64)%65536:][:64])
	}
	return uint32(s.Sum(nil)[0])
}

//go:wasmexport tight
func tight(n uint32) uint32 {
	s := uint32(1)
	for i := uint32(0); i < n; i++ {
		s = s*31 + i
		s ^= s >> 3
	}
	return s
}

//go:wasmexport fib
func fibx(n uint32) uint32 { return fib(n) }

func fib(n uint32) uint32 {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

type doc struct {
	Text  string            `json:"text"`
	N     int               `json:"n"`
	List  []float64         `json:"list"`
	Attrs map[string]string `json:"attrs"`
}

var document []byte

// makejson prepares a document of about n bytes.
//
//go:wasmexport makejson
func makejson(n uint32) {
	d := doc{N: 1, Attrs: map[string]string{"a": "b", "c": "d"}}
	for len(d.Text) < int(n)/2 {
		d.Text += "hello, world\n"
		d.List = append(d.List, float64(len(d.Text))*1.25)
	}
	document, _ = json.Marshal(d)
}

// jsonk decodes and encodes it.
//
//go:wasmexport jsonk
func jsonk(n uint32) uint32 {
	var total uint32
	for range n {
		var d doc
		if err := json.Unmarshal(document, &d); err != nil {
			panic(err)
		}
		d.N++
		out, _ := json.Marshal(d)
		total += uint32(len(out))
	}
	return total
}

//go:wasmexport spin
func spin(n uint32) uint32 {
	for {
		n++
	}
}

//go:wasmexport rec
func rec(n uint32) uint32 {
	if n == 0 {
		return 0
	}
	return rec(n-1) + 1
}

//go:wasmexport chans
func chans(n uint32) uint32 {
	c := make(chan uint32)
	go func() {
		for i := uint32(0); i < n; i++ {
			c <- i
		}
		close(c)
	}()
	var s uint32
	for v := range c {
		s += v
	}
	return s
}

//go:wasmexport rnd
func rnd(uint32) uint32 { return mrand.Uint32() }

//go:wasmexport crnd
func crnd(uint32) uint32 {
	var b [4]byte
	rand.Read(b[:])
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

//go:wasmexport maporder
func maporder(uint32) uint32 {
	m := map[int]int{1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7, 8: 8}
	var r uint32
	for k := range m {
		r = r*10 + uint32(k)
	}
	return r
}

var kept []string

// keep remembers a secret everywhere it can; what was kept before is returned.
//
//go:wasmexport keep
func keep(n uint32) uint32 {
	before := uint32(len(kept))
	kept = append(kept, fmt.Sprint("secret ", n))
	buf[0]++
	return before + uint32(buf[0])<<16
}

//go:wasmexport eat
func eat(n uint32) uint32 {
	b := make([]byte, n)
	for i := range b {
		b[i] = 1
	}
	return uint32(len(b))
}

//go:wasmexport hello
func hello(uint32) uint32 { os.Stdout.WriteString("hi\n"); return 0 }

//go:wasmexport boom
func boom(uint32) uint32 {
	var p *[1 << 30]byte
	return uint32(p[uintptr(unsafe.Pointer(&buf[0]))])
}

func main() {}
