package image

import (
	"bytes"
	crand "crypto/rand"
	"encoding/binary"
	"math/rand/v2"

	"github.com/tetratelabs/wazero/api"
)

// Random is the random source of a guest while it is prepared: a stream whose
// seed is drawn anew for each install and then forgotten, but known while the
// guest's generator is looked for. It is for initialisation and warm-up only.
type Random struct {
	seed   [32]byte
	stream *rand.ChaCha8
}

// NewRandom draws a seed from the operating system.
func NewRandom() *Random {
	r := &Random{}
	crand.Read(r.seed[:]) // never fails, see its documentation
	r.stream = rand.NewChaCha8(r.seed)
	return r
}

func (r *Random) Read(p []byte) (int, error) { return r.stream.Read(p) }

// The layout of the generator of Go's runtime (internal/chacha8rand.State).
const (
	goBlock = 32 * 8 // bytes of output kept ready, right before the key
	goKey   = 32
	goEpoch = 124 // outputs per key
	goKeys  = 512 // how far to follow the chain of keys
)

// FindGo looks for the generator of a standard-Go guest right after its
// initialisation, and gives nothing for other guests or for a Go runtime whose
// layout it does not know.
//
// The runtime seeds a ChaCha8 with its first 32 random bytes. Its first four
// outputs key the hash functions, which cannot be changed later because maps
// exist; the next four key the generator of the main thread, which takes a new
// key every 124 outputs: the chain is followed. A key may also lie about on a
// stack, and overwriting anything else would corrupt the guest: a place counts
// only if the block before it is output of that very key.
func (r *Random) FindGo(mem api.Memory) []Span {
	if mem == nil {
		return nil
	}
	view, ok := mem.Read(0, mem.Size())
	if !ok {
		return nil
	}
	var seed, key [goKey]byte
	rand.NewChaCha8(r.seed).Read(seed[:])
	boot := rand.NewChaCha8(seed)
	for i := range 8 {
		binary.LittleEndian.PutUint64(key[8*(i%4):], boot.Uint64())
	}
	gen := rand.NewChaCha8(key)
	stream := make([]byte, 0, 8*goEpoch)
	for range goKeys {
		stream = stream[:0]
		for range goEpoch {
			stream = binary.LittleEndian.AppendUint64(stream, gen.Uint64())
			if len(stream) == 8 { // the marshalled state ends with the key in use
				state, _ := gen.MarshalBinary()
				copy(key[:], state[len(state)-goKey:])
			}
		}
		if at, ok := findKey(view, key[:], stream); ok {
			return []Span{{uint32(at), goBlock + goKey}}
		}
	}
	return nil
}

func findKey(view, key, stream []byte) (int, bool) {
	for at := 0; ; at += len(key) {
		i := bytes.Index(view[at:], key)
		if i < 0 {
			return 0, false
		}
		at += i
		if at%8 == 0 && at >= goBlock && bytes.Contains(stream, view[at-goBlock:at-goBlock+64]) {
			return at - goBlock, true
		}
	}
}
