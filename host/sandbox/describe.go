package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox/compile"
)

// Limits of a description, told in docs/abi.md.
const (
	maxTools       = 128
	maxDescription = 1 << 20
)

// description finds what the tools are, cheapest first: pinned with the
// package, in the manifest, kept from last time. Only then is the module run.
func (p *Plugin) description(ctx context.Context) (abi.Description, error) {
	switch {
	case p.pkg.Description != nil:
		return *p.pkg.Description, nil
	case len(p.pkg.Manifest.Tools) > 0:
		return abi.Description{ABI: abi.Version, Tools: p.pkg.Manifest.Tools}, nil
	}
	file := ""
	if p.loader.Dir != "" && p.pkg.Digest != "" {
		name := p.pkg.Digest
		if p.pkg.Format != nil { // its settings may decide
			name = p.key()
		}
		if err := compile.Private(p.loader.Dir); err != nil {
			return abi.Description{}, err
		}
		file = filepath.Join(p.loader.Dir, name+".describe.json")
		b, err := os.ReadFile(file)
		if err == nil { // a damaged file is as good as none
			if d, err := parseDescription(b); err == nil && checkDescription(d) == nil {
				return d, nil
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return abi.Description{}, err
		}
	}
	b, err := p.describe(ctx)
	if err != nil {
		return abi.Description{}, fmt.Errorf("asking the module for its tools: %w", err)
	}
	d, err := parseDescription(b)
	if err == nil && file != "" {
		if err := writeAtomic(file, b); err != nil {
			p.warn("its description cannot be kept: " + err.Error())
		}
	}
	return d, err
}

// describe runs elf_describe, without rights and under the limits of a call.
func (p *Plugin) describe(ctx context.Context) ([]byte, error) {
	prog, err := p.program(ctx, nil)
	if err != nil {
		return nil, err
	}
	cctx, c := p.begin(ctx, host.Call{Tool: abi.ExportDescribe}, true)
	in, err := prog.get(cctx, c)
	var out []byte
	if err == nil {
		out, err = in.describe(cctx, c)
		c.unlink(cctx, err != nil)
		in.used(c)
		prog.put(cctx, c, in, err != nil)
	}
	c.end(err)
	return out, err
}

func parseDescription(b []byte) (d abi.Description, err error) {
	if len(b) > maxDescription {
		return d, abiErrorf("the description has %d bytes; the limit is %d", len(b), maxDescription)
	}
	if _, err := checkJSON(b, maxDepth); err != nil {
		return d, abiErrorf("the description is no acceptable JSON: %v", err)
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return d, abiErrorf("the description: %v", err)
	}
	return d, nil
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func checkDescription(d abi.Description) error {
	switch {
	case d.ABI != abi.Version:
		return abiErrorf("the description is of %q; this host knows %q", oneLine(d.ABI), abi.Version)
	case len(d.Tools) == 0:
		return abiErrorf("the plugin has no tools")
	case len(d.Tools) > maxTools:
		return abiErrorf("the plugin has %d tools; the limit is %d", len(d.Tools), maxTools)
	}
	seen := map[string]bool{}
	for _, t := range d.Tools {
		switch {
		case !toolName.MatchString(t.Name):
			return abiErrorf("a tool has the name %q; letters, digits, _ and - are allowed, 64 at the most", oneLine(t.Name))
		case seen[t.Name]:
			return abiErrorf("two tools have the name %q", t.Name)
		case len(t.Input) == 0:
			return abiErrorf("the tool %q has no inputSchema", t.Name)
		}
		seen[t.Name] = true
	}
	return nil
}

const tmpPrefix = ".tmp-"

// writeAtomic writes beside and renames: another process sees all or nothing.
func writeAtomic(file string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), tmpPrefix+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
