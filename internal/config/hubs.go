package config

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/internal/config/strict"
	"github.com/elfhost/elfhost/skillhub"
)

// Hub is a hub that a person added: where it is, and the root that was pinned.
type Hub struct {
	Name     string          `toml:"name"`
	Location string          `toml:"location"` // a URL, a folder, or a bundle
	Root     skillhub.Digest `toml:"root"`
}

// HubsFile holds the hubs. It is the user's alone: a project adds none.
func (p Paths) HubsFile() string { return filepath.Join(p.Config, "hubs.toml") }

// HubsState is where what was seen of each hub is kept.
func (p Paths) HubsState() string { return filepath.Join(p.State, "hubs") }

// HubsIndex is the index that is searched.
func (p Paths) HubsIndex() string { return filepath.Join(p.Cache, "hubs.db") }

type hubsFile struct {
	Hub []Hub `toml:"hub,omitempty"`
}

const hubsHead = "# Written by elfhost: the hubs that packages come from, and their pinned roots.\n# See `elfhost hub list`; `elfhost hub remove` takes one away.\n\n"

// Hubs reads the hubs, in the order in which they were added.
func (p Paths) Hubs() ([]Hub, error) {
	file := p.HubsFile()
	b, present, err := strict.ReadIfPresent(file)
	if err != nil || !present {
		return nil, err
	}
	var f hubsFile
	ls, err := strict.Decode(b, file, &f)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for i, h := range f.Hub {
		key := fmt.Sprintf("hub[%d]", i)
		switch {
		case abi.CheckName(h.Name) != nil:
			return nil, ls.Fail(file, key, "%w", abi.CheckName(h.Name))
		case seen[h.Name]:
			return nil, ls.Fail(file, key, "the hub %q is there twice", h.Name)
		case h.Location == "" || !h.Root.Valid():
			return nil, ls.Fail(file, key, "the hub %q has no location, or no root", h.Name)
		}
		seen[h.Name] = true
	}
	return f.Hub, nil
}

// UpdateHubs changes the hubs: it locks the file against other processes, reads
// it, lets change edit the list, and replaces it whole.
func (p Paths) UpdateHubs(change func([]Hub) ([]Hub, error)) error {
	file := p.HubsFile()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("making the folder of %q: %w", file, err)
	}
	unlock, err := strict.Lock(file + ".lock")
	if err != nil {
		return fmt.Errorf("locking %q: %w", file, err)
	}
	defer unlock()
	hubs, err := p.Hubs()
	if err != nil {
		return err
	}
	if hubs, err = change(slices.Clone(hubs)); err != nil {
		return err
	}
	var b bytes.Buffer
	b.WriteString(hubsHead)
	if err := toml.NewEncoder(&b).Encode(hubsFile{hubs}); err != nil {
		return fmt.Errorf("writing %q: %w", file, err)
	}
	return strict.WriteFile(file, b.Bytes())
}
