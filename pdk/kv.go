package pdk

import "context"

// The key-value store is this plugin's alone and outlives the call. It needs
// the capability kv, whose scope is the quota. Keys are 1 to 512 bytes.

type kvKey struct {
	Key string `json:"key"`
}

// KVGet returns a key's value; abi.ErrNotFound where there is none.
func KVGet(ctx context.Context, key string) ([]byte, error) {
	return opKVGet.do(ctx, kvKey{key}, nil, nil)
}

// KVSet stores a value; abi.ErrTooLarge past the quota.
func KVSet(ctx context.Context, key string, value []byte) error {
	_, err := opKVSet.do(ctx, kvKey{key}, value, nil)
	return err
}

// KVDelete removes a key; abi.ErrNotFound where there is none.
func KVDelete(ctx context.Context, key string) error {
	_, err := opKVDelete.do(ctx, kvKey{key}, nil, nil)
	return err
}

// KVKeys returns the keys that begin with prefix, in byte order.
func KVKeys(ctx context.Context, prefix string) ([]string, error) {
	header := struct {
		Prefix string `json:"prefix,omitempty"`
		After  string `json:"after,omitempty"`
	}{Prefix: prefix}
	var keys []string
	for {
		var reply struct {
			Keys []string `json:"keys"`
			More bool     `json:"more"`
		}
		if _, err := opKVList.do(ctx, header, nil, &reply); err != nil {
			return nil, err
		}
		keys = append(keys, reply.Keys...)
		if !reply.More || len(reply.Keys) == 0 {
			return keys, nil
		}
		header.After = keys[len(keys)-1]
	}
}
