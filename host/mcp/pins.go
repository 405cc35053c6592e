package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// pinned is the file of the definitions that were agreed to for one server.
type pinned struct {
	Server string            `json:"server"`
	Digest string            `json:"digest"` // of the Server that gave them
	Tools  []json.RawMessage `json:"tools"`  // as the server wrote them
	// Prompts and Resources are what the server had last time. Nobody agreed to
	// them: a person picks a prompt, and a resource is read by a tool of ours.
	Prompts   []json.RawMessage `json:"prompts,omitempty"`
	Resources bool              `json:"resources,omitempty"`
}

func (l *link) pinFile() string {
	return filepath.Join(l.c.opt.Pins, l.s.Name+"-"+l.s.Digest()[:16]+".json")
}

// readPins gives what was agreed to; nothing when the file is not there, or is
// another server's. A file that cannot be read is an error: it must not read as
// consent to a first listing.
func (l *link) readPins() (p *pinned, err error) {
	if l.c.opt.Pins == "" {
		return nil, nil
	}
	f, err := os.Open(l.pinFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > 2*maxListing {
		return nil, fmt.Errorf("%q is not a file of pinned tools", l.pinFile())
	}
	p = &pinned{}
	if err := json.NewDecoder(f).Decode(p); err != nil {
		return nil, fmt.Errorf("reading the pinned tools in %q: %w", l.pinFile(), err)
	}
	if p.Digest != l.s.Digest() {
		return nil, fmt.Errorf("%q holds the tools of another server", l.pinFile())
	}
	return p, nil
}

// writePins is called with the link's lock held.
func (l *link) writePins() error {
	if l.c.opt.Pins == "" {
		return nil
	}
	p := pinned{Server: l.s.Name, Digest: l.s.Digest(), Tools: []json.RawMessage{}, Prompts: l.prompts, Resources: l.reads}
	for _, d := range l.agreed {
		p.Tools = append(p.Tools, d.Raw)
	}
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if err := keepFile(l.pinFile(), b); err != nil {
		return err
	}
	l.torn = false
	return nil
}

// keepFile puts a file in place whole, also after a power cut.
func keepFile(name string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".kept-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(b)
	if err == nil {
		err = tmp.Sync() // or the name may come to the disk before what it names
	}
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return err
}
