package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/reach"
)

// tree is the files of the call, nil when there are none: before a call, and
// where the host has none.
func (g *Guest) tree() *reach.Tree {
	if l := g.call.plugin.loader; !g.call.early && l.Tree != nil {
		return l.Tree(g.call.from.Caller)
	}
	return nil
}

// ReadFile reads a file below the virtual root, as a guest could through WASI:
// for formats that have a function for it. A longer file is abi.ErrTooLarge.
func (g *Guest) ReadFile(ctx context.Context, name string, limit int64) ([]byte, error) {
	return g.Effect("read "+name, nil, func() ([]byte, error) {
		tree := g.tree()
		if tree == nil {
			return nil, abi.ErrNotFound
		}
		b, err := tree.ReadFile(ctx, g.call.rights, name, limit)
		if b == nil && err == nil {
			b = []byte{}
		}
		return b, err
	})
}

// WriteFile replaces a file below the virtual root, or leaves it as it was.
func (g *Guest) WriteFile(ctx context.Context, name string, data []byte) error {
	_, err := g.Effect("write "+name, data, func() ([]byte, error) {
		tree := g.tree()
		if tree == nil {
			return nil, abi.ErrDenied
		}
		_, err := tree.WriteFile(ctx, g.call.rights, name, bytes.NewReader(data), reach.WriteOptions{Parents: true})
		return nil, err
	})
	return err
}

// maxListed bounds ReadDir.
const maxListed = 10_000

type listed struct {
	Name string `json:"name"`
	Dir  bool   `json:"dir,omitempty"`
}

// ReadDir lists a folder below the virtual root, as the JSON of
// {"entries": [{"name", "dir"?: true}, …], "more"?: true}, sorted by name.
func (g *Guest) ReadDir(ctx context.Context, name string) (json.RawMessage, error) {
	return g.Effect("list "+name, nil, func() ([]byte, error) {
		tree := g.tree()
		if tree == nil {
			return nil, abi.ErrNotFound
		}
		found, err := tree.ReadDir(ctx, g.call.rights, name)
		if err != nil {
			return nil, err
		}
		var list struct {
			Entries []listed `json:"entries"`
			More    bool     `json:"more,omitempty"`
		}
		list.Entries = []listed{}
		for _, e := range found {
			list.Entries = append(list.Entries, listed{e.Name(), e.IsDir()})
		}
		slices.SortFunc(list.Entries, func(a, b listed) int { return strings.Compare(a.Name, b.Name) })
		if list.More = len(list.Entries) > maxListed; list.More {
			list.Entries = list.Entries[:maxListed]
		}
		return json.Marshal(list)
	})
}
