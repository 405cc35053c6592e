package reach

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/elfhost/elfhost/abi"
)

func TestKV(t *testing.T) {
	k := &KV{Dir: t.TempDir()}
	r := give(t, "kv 1KiB")
	if _, err := k.Get(bg, r, "p", "a"); !errors.Is(err, abi.ErrNotFound) {
		t.Error(err)
	}
	if err := k.Set(bg, r, "p", "a", []byte("one")); err != nil {
		t.Fatal(err)
	}
	if v, err := (&KV{Dir: k.Dir}).Get(bg, r, "p", "a"); string(v) != "one" || err != nil {
		t.Errorf("not kept: %q, %v", v, err)
	}
	if _, err := k.Get(bg, r, "q", "a"); !errors.Is(err, abi.ErrNotFound) {
		t.Errorf("another plugin's: %v", err)
	}
	if err := k.Set(bg, r, "p", "b", make([]byte, 1100)); !errors.Is(err, denied) {
		t.Errorf("over the quota: %v", err)
	}
	if err := k.Set(bg, r, "p", "b", make([]byte, 900)); err != nil {
		t.Error(err)
	}
	if err := k.Set(bg, r, "p", "a", make([]byte, 200)); !errors.Is(err, denied) {
		t.Errorf("the sum over the quota: %v", err)
	}
	if keys, err := k.Keys(bg, r, "p", ""); strings.Join(keys, " ") != "a b" || err != nil {
		t.Error(keys, err)
	}
	if v, err := k.Get(bg, r, "p", "a"); string(v) != "one" || err != nil {
		t.Errorf("a refused write changed it: %q, %v", v, err)
	}
	for _, key := range []string{"", strings.Repeat("k", 513)} {
		if err := k.Set(bg, r, "p", key, nil); !errors.Is(err, abi.ErrInvalid) {
			t.Error(err)
		}
	}
	if err := k.Delete(bg, r, "p", "b"); err != nil {
		t.Error(err)
	}
	if _, err := k.Get(bg, give(t, "fs.read /ws/**"), "p", "a"); !errors.Is(err, denied) {
		t.Error(err)
	}
	if err := k.Set(bg, r, "../../evil", "a", nil); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(k.Dir, "kv-..%2F..%2Fevil.json")); err != nil {
		t.Error(err)
	}
	if err := k.Forget("p"); err != nil {
		t.Error(err)
	}
	if keys, _ := k.Keys(bg, r, "p", ""); len(keys) != 0 {
		t.Error(keys)
	}
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			if err := (&KV{Dir: k.Dir}).Set(bg, r, "p", fmt.Sprint(i), []byte("v")); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if keys, _ := k.Keys(bg, r, "p", ""); len(keys) != 20 {
		t.Errorf("%d of 20 keys", len(keys))
	}
}
