package reach

import (
	"fmt"
	"sync/atomic"

	"github.com/elfhost/elfhost/abi"
)

// Budget counts what one call spends on the network. Its counters only grow;
// it is safe for concurrent use. A zero maximum is no limit.
type Budget struct {
	MaxRequests, MaxIn, MaxOut int64

	requests, in, out atomic.Int64
}

// Spent says what was used: requests (each redirect is one), bytes of response
// bodies after decoding, bytes of request bodies.
func (b *Budget) Spent() (requests, in, out int64) {
	return b.requests.Load(), b.in.Load(), b.out.Load()
}

func (b *Budget) request() error {
	if b == nil {
		return nil
	}
	if n := b.requests.Add(1); b.MaxRequests > 0 && n > b.MaxRequests {
		return fmt.Errorf("more than %d requests in one call: %w", b.MaxRequests, abi.ErrLimit)
	}
	return nil
}

func (b *Budget) read(n int) error {
	if b == nil {
		return nil
	}
	if sum := b.in.Add(int64(n)); b.MaxIn > 0 && sum > b.MaxIn {
		return fmt.Errorf("more than %d bytes received in one call: %w", b.MaxIn, abi.ErrLimit)
	}
	return nil
}

func (b *Budget) sent(n int) error {
	if b == nil {
		return nil
	}
	if sum := b.out.Add(int64(n)); b.MaxOut > 0 && sum > b.MaxOut {
		return fmt.Errorf("more than %d bytes sent in one call: %w", b.MaxOut, abi.ErrLimit)
	}
	return nil
}
