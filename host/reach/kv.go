package reach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach/internal/state"
)

// KV is a persistent store per plugin: one file each in Dir, written
// atomically, locked against other processes. Safe for concurrent use.
type KV struct {
	Dir string
}

const (
	maxKey   = 512
	maxStore = 64 << 20 // of one plugin, whatever its quota
)

type pairs = map[string][]byte

// Get returns a value, or abi.ErrNotFound.
func (k *KV) Get(ctx context.Context, r policy.Rights, plugin, key string) ([]byte, error) {
	all, err := k.read(ctx, r, plugin)
	if err != nil {
		return nil, err
	}
	v, ok := all[key]
	if !ok {
		return nil, fmt.Errorf("key %q: %w", key, abi.ErrNotFound)
	}
	return v, nil
}

// Keys lists the keys with the prefix, sorted.
func (k *KV) Keys(ctx context.Context, r policy.Rights, plugin, prefix string) ([]string, error) {
	all, err := k.read(ctx, r, plugin)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(s string) bool { return !strings.HasPrefix(s, prefix) }), nil
}

// Set stores a value. The quota is the grant's: the use that is checked
// carries the bytes that the whole store would have (keys and values).
func (k *KV) Set(ctx context.Context, r policy.Rights, plugin, key string, value []byte) error {
	if key == "" || len(key) > maxKey {
		return fmt.Errorf("a key has 1 to %d bytes: %w", maxKey, abi.ErrInvalid)
	}
	all, err := k.load(plugin)
	if err != nil {
		return err
	}
	for {
		// A person may be asked: not while the lock is held.
		all[key] = value
		n := size(all)
		if n > maxStore {
			return fmt.Errorf("the store of %q would hold %d bytes: %w", plugin, n, abi.ErrTooLarge)
		}
		if err := r.Check(ctx, policy.Use{Cap: abi.KV, Verb: "set", Target: plugin, N: n}); err != nil {
			return err
		}
		err := k.update(plugin, func(now pairs) error {
			now[key] = value
			if size(now) > n {
				all = now
				return errGrown
			}
			return nil
		})
		if err != errGrown {
			return err
		}
	}
}

// errGrown: another process stored something between the check and the lock.
var errGrown = errors.New("the store grew meanwhile")

// Delete removes a key; a missing one is no error.
func (k *KV) Delete(ctx context.Context, r policy.Rights, plugin, key string) error {
	if err := r.Check(ctx, policy.Use{Cap: abi.KV, Verb: "delete", Target: plugin}); err != nil {
		return err
	}
	return k.update(plugin, func(all pairs) error { delete(all, key); return nil })
}

// Forget removes a plugin's store, when the plugin is removed.
func (k *KV) Forget(plugin string) error {
	path := k.path(plugin)
	unlock, err := state.Lock(path + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func size(all pairs) (n int64) {
	for key, v := range all {
		n += int64(len(key) + len(v))
	}
	return n
}

// path cannot leave Dir whatever the plugin is called.
func (k *KV) path(plugin string) string {
	return filepath.Join(k.Dir, "kv-"+url.QueryEscape(plugin)+".json")
}

func (k *KV) read(ctx context.Context, r policy.Rights, plugin string) (pairs, error) {
	if err := r.Check(ctx, policy.Use{Cap: abi.KV, Verb: "get", Target: plugin}); err != nil {
		return nil, err
	}
	return k.load(plugin)
}

func (k *KV) load(plugin string) (pairs, error) {
	all := pairs{}
	data, err := os.ReadFile(k.path(plugin))
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	} else if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("the store of %q is damaged: %w", plugin, err)
	}
	return all, nil
}

func (k *KV) update(plugin string, change func(pairs) error) error {
	unlock, err := state.Lock(k.path(plugin) + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	all, err := k.load(plugin)
	if err != nil {
		return err
	}
	if err := change(all); err != nil {
		return err
	}
	data, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return state.Write(k.path(plugin), data)
}
