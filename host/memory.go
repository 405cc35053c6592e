package host

import "context"

// memoryKey is for a Memory in a context.
type memoryKey struct{}

// WithMemory has what is answered "until the session ends" about calls below
// ctx kept in m, and not in the gate: where one session serves several clients,
// one's answer counts for its own calls alone. What outlives the session stays
// with the gate's own Memory.
func WithMemory(ctx context.Context, m Memory) context.Context {
	return context.WithValue(ctx, memoryKey{}, m)
}

func memoryOf(ctx context.Context) (Memory, bool) {
	m, ok := ctx.Value(memoryKey{}).(Memory)
	return m, ok
}
