package reach

import (
	"context"

	"github.com/elfhost/elfhost/host/policy"
)

// KV is a persistent store per plugin: one file each in Dir, written
// atomically, locked against other processes. Safe for concurrent use.
type KV struct {
	Dir string
}

// Get returns a value, or abi.ErrNotFound.
func (k *KV) Get(ctx context.Context, r policy.Rights, plugin, key string) ([]byte, error) {
	return k.get(ctx, r, plugin, key)
}

// Set stores a value. The quota is the grant's: the use that is checked
// carries the bytes that the whole store would have (keys and values).
func (k *KV) Set(ctx context.Context, r policy.Rights, plugin, key string, value []byte) error {
	return k.set(ctx, r, plugin, key, value)
}

// Delete removes a key; a missing one is no error.
func (k *KV) Delete(ctx context.Context, r policy.Rights, plugin, key string) error {
	return k.del(ctx, r, plugin, key)
}

// Keys lists the keys with the prefix, sorted.
func (k *KV) Keys(ctx context.Context, r policy.Rights, plugin, prefix string) ([]string, error) {
	return k.keys(ctx, r, plugin, prefix)
}
