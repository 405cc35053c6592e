package outline

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

//go:embed all:dist
var dist embed.FS

// maxPack bounds a pack's module, in bytes: the largest known has 6 MB.
const maxPack = 16 << 20

// Packs are the grammars that a person installed, and those that the binary
// carries. It is safe for concurrent use, also by several processes: a pack
// appears whole or not at all.
type Packs struct {
	// Dir holds installed packs. "": none, and none can be added.
	Dir string
	// Cache holds their machine code. "": it is made anew in each process.
	Cache string
	// Compiler is the program that knows compile.Verb; "": this process
	// compiles, which is for tests.
	Compiler string

	mu     sync.Mutex
	loaded map[string]*slot
}

// Grammar is a pack, for people.
type Grammar struct {
	ID         string   `json:"id"` // the grammar's own name: tree_sitter_ID
	Language   string   `json:"language"`
	Extensions []string `json:"extensions"`
	Source     string   `json:"source"` // where it came from
	Digest     string   `json:"digest"` // sha256 of the module, in hex
	Size       int      `json:"size"`
	Embedded   bool     `json:"embedded,omitempty"` // part of the binary
}

// Errors of Packs.
var (
	// ErrNoCore: packs cannot run in this build.
	ErrNoCore = errors.New("this binary was built without the core for grammar packs: run make grammars, then build again")
	// ErrNoPack: no such pack is installed.
	ErrNoPack = errors.New("no such grammar is installed")
	// ErrExtensions: it is not known which files the grammar is for.
	ErrExtensions = errors.New("it is not known which files this grammar is for")
)

// Add checks a module, compiles it and installs it in place of an older one of
// the same name. extensions are needed for languages that are not known here.
func (p *Packs) Add(ctx context.Context, module []byte, source string, extensions []string) (Grammar, error) {
	g, err := describe(module, source, extensions)
	if err != nil {
		return Grammar{}, err
	}
	core, err := embedded("core")
	if err != nil {
		return Grammar{}, ErrNoCore
	}
	prog, err := engine{p.Cache, p.Compiler}.load(ctx, core, module)
	if err != nil {
		return Grammar{}, err
	}
	defer prog.close(context.WithoutCancel(ctx))
	if _, err := prog.parse(ctx, g.language(), []byte("\n"), 0); err != nil {
		return Grammar{}, fmt.Errorf("trying it: %w", err)
	}
	if p.Dir == "" {
		return Grammar{}, errors.New("there is no folder for grammars")
	}
	if err := os.MkdirAll(p.Dir, 0o755); err != nil {
		return Grammar{}, err
	}
	about, err := json.MarshalIndent(g, "", "  ")
	if err != nil {
		return Grammar{}, err
	}
	// The module's name has its digest: a description always finds its own.
	if err := replace(filepath.Join(p.Dir, g.file()), module); err != nil {
		return Grammar{}, err
	}
	if err := replace(filepath.Join(p.Dir, g.ID+".json"), append(about, '\n')); err != nil {
		return Grammar{}, err
	}
	p.sweep(g.ID, g.file())
	return g, nil
}

// describe says what a module is without running it.
func describe(module []byte, source string, extensions []string) (Grammar, error) {
	if len(module) > maxPack {
		return Grammar{}, fmt.Errorf("%w: it has %d bytes, at most %d are accepted", errPack, len(module), maxPack)
	}
	m, err := wasmbin.Parse(module)
	if err != nil {
		return Grammar{}, err
	}
	id, err := packID(m)
	if err != nil {
		return Grammar{}, err
	}
	sum := sha256.Sum256(module)
	g := Grammar{ID: id, Source: source, Digest: hex.EncodeToString(sum[:]), Size: len(module)}
	if l := byID(id); l != nil {
		g.Language, g.Extensions = l.name, l.exts
	} else if o, ok := others[id]; ok {
		g.Language, g.Extensions = o.name, o.exts
	} else {
		g.Language = strings.ToUpper(id[:1]) + strings.ReplaceAll(id[1:], "_", " ")
	}
	if len(extensions) > 0 {
		g.Extensions = nil
		for _, e := range extensions {
			if e = strings.ToLower(e); !strings.HasPrefix(e, ".") || len(e) < 2 || len(e) > 32 || strings.ContainsAny(e, `/\ `) {
				return Grammar{}, fmt.Errorf("an extension begins with a dot and has no spaces, unlike %q", e)
			}
			g.Extensions = append(g.Extensions, e)
		}
	}
	if len(g.Extensions) == 0 {
		return Grammar{}, fmt.Errorf("%w (%s)", ErrExtensions, id)
	}
	return g, nil
}

func (g Grammar) file() string { return g.ID + "-" + g.Digest[:16] + ".wasm" }

// language gives the table by which its trees are read.
func (g Grammar) language() *language {
	if l := byID(g.ID); l != nil {
		return l
	}
	return &language{name: g.Language, id: g.ID, exts: g.Extensions, kinds: map[string]kind{}, guess: true}
}

// Remove uninstalls a pack. What the binary carries stays.
func (p *Packs) Remove(id string) error {
	if !validID(id) || p.Dir == "" {
		return fmt.Errorf("%w: %q", ErrNoPack, id)
	}
	if err := os.Remove(filepath.Join(p.Dir, id+".json")); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %q", ErrNoPack, id)
	} else if err != nil {
		return err
	}
	p.sweep(id, "")
	return nil
}

// sweep removes the modules of a grammar that no description names any more.
func (p *Packs) sweep(id, keep string) {
	old, _ := filepath.Glob(filepath.Join(p.Dir, id+"-????????????????.wasm"))
	for _, f := range old {
		if filepath.Base(f) != keep {
			_ = os.Remove(f) // a file that stays is never read
		}
	}
}

// List gives the installed packs and then those of the binary that no
// installed one replaces, by name. A description that cannot be read is left out.
func (p *Packs) List() []Grammar {
	var out []Grammar
	if p.Dir != "" {
		files, _ := filepath.Glob(filepath.Join(p.Dir, "*.json"))
		for _, f := range files {
			var g Grammar
			b, err := readBounded(f, 64<<10)
			if err == nil && json.Unmarshal(b, &g) == nil && validID(g.ID) && g.ID+".json" == filepath.Base(f) && len(g.Digest) == 64 {
				g.Embedded = false
				out = append(out, g)
			}
		}
	}
	entries, _ := dist.ReadDir("dist")
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".wasm.gz")
		l := byID(id)
		if !ok || l == nil || slices.ContainsFunc(out, func(g Grammar) bool { return g.ID == id }) {
			continue
		}
		out = append(out, Grammar{ID: id, Language: l.name, Extensions: l.exts, Source: "this binary", Embedded: true})
	}
	slices.SortStableFunc(out, func(a, b Grammar) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// module reads a pack and holds it against its digest.
func (p *Packs) module(g Grammar) ([]byte, error) {
	if g.Embedded {
		return embedded(g.ID)
	}
	b, err := readBounded(filepath.Join(p.Dir, g.file()), maxPack)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != g.Digest {
		return nil, fmt.Errorf("the grammar %s was changed after it was installed", g.ID)
	}
	return b, nil
}

// embedded unpacks a module that the binary carries.
func embedded(name string) ([]byte, error) {
	b, err := dist.ReadFile("dist/" + name + ".wasm.gz")
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	b, err = io.ReadAll(io.LimitReader(z, maxPack+1))
	if err == nil && len(b) > maxPack {
		err = fmt.Errorf("the embedded module %q is over %d bytes", name, maxPack)
	}
	return b, err
}

// replace writes a file whole or not at all.
func replace(name string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// find gives the pack for a file: by its extension.
func (p *Packs) find(ext string) (Grammar, bool) {
	if p == nil || ext == "" {
		return Grammar{}, false
	}
	list := p.List()
	// A person's pack may claim an extension that another language has.
	for _, installed := range []bool{true, false} {
		for _, g := range list {
			if g.Embedded != installed && slices.Contains(g.Extensions, ext) {
				return g, true
			}
		}
	}
	return Grammar{}, false
}

// slot is a pack that was used in this session.
type slot struct {
	turn chan struct{} // holds one token
	lang *language
	prog *program
}

// parse outlines a text with a pack. A failure to load is not kept.
func (p *Packs) parse(ctx context.Context, g Grammar, src []byte, timeout time.Duration) (reply, error) {
	key := g.ID + g.Digest
	p.mu.Lock()
	s := p.loaded[key]
	if s == nil {
		s = &slot{turn: make(chan struct{}, 1), lang: g.language()}
		s.turn <- struct{}{}
		if p.loaded == nil {
			p.loaded = map[string]*slot{}
		}
		p.loaded[key] = s
	}
	p.mu.Unlock()
	select {
	case <-s.turn:
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	}
	defer func() { s.turn <- struct{}{} }()
	if s.prog == nil {
		prog, err := p.load(ctx, g)
		if err != nil {
			return reply{}, err
		}
		s.prog = prog
	}
	t, err := s.prog.parse(ctx, s.lang, src, timeout)
	if err != nil {
		return reply{}, err
	}
	b, err := json.Marshal(s.lang.answer(t))
	if err != nil {
		return reply{}, err
	}
	return decodeReply(b)
}

func (p *Packs) load(ctx context.Context, g Grammar) (*program, error) {
	core, err := embedded("core")
	if err != nil {
		return nil, ErrNoCore
	}
	module, err := p.module(g)
	if err != nil {
		return nil, fmt.Errorf("the grammar %s: %w", g.ID, err)
	}
	prog, err := engine{p.Cache, p.Compiler}.load(ctx, core, module)
	var refused *vet.Refusal
	if errors.As(err, &refused) || err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("the grammar %s: %w", g.ID, err)
	}
	return prog, err
}

// Close gives back what the session loaded. Parse nothing after it.
func (p *Packs) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, s := range p.loaded {
		<-s.turn
		if s.prog != nil {
			errs = append(errs, s.prog.close(context.Background()))
		}
		s.turn <- struct{}{}
	}
	p.loaded = nil
	return errors.Join(errs...)
}
