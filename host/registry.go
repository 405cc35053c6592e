package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/elfhost/elfhost/abi"
)

// DefaultMaxOutput is what Invoke lets through of a tool's text, in bytes.
const DefaultMaxOutput = 50 << 10

// Options of a registry. The zero value works: a gate that allows the safe set
// only, and long outputs that are cut but not kept.
type Options struct {
	Gate *Gate
	// Spill keeps the whole of an output that was cut and returns the path under
	// which the Read tool finds it.
	Spill func(ctx context.Context, session, callID, text string) (path string, err error)
	// After sees the result of each call that was made, as the model will get
	// it, and may add to it. It must be safe for concurrent use. Nil: nothing.
	After func(ctx context.Context, s Spec, c Call, res abi.Result) abi.Result
	// Inherit shows the tools of another registry, live. Own names win; what is
	// inherited runs behind this registry's gate.
	Inherit *Registry
	// MaxDepth bounds calls that plugins make of tools within calls; 0: 4.
	MaxDepth int
	Log      *slog.Logger // of panics in tools; nil: none
}

// Registry holds the tools of one session, or is a live view of another
// registry made by Filter or Under. It is safe for concurrent use.
type Registry struct {
	own  *set
	opt  Options
	keep []func(Spec) bool
	view bool
}

// set is what a registry and its views share. Readers take a snapshot and
// never wait; writers replace it.
type set struct {
	mu   sync.Mutex
	now  atomic.Pointer[snapshot]
	news *news // shared with the registries that inherit
}

type snapshot struct {
	order  []*entry
	byName map[string]*entry
}

// news wakes those who wait for a change.
type news struct {
	mu sync.Mutex
	ch chan struct{}
}

// New makes an empty registry.
func New(opt Options) *Registry {
	if opt.Gate == nil {
		opt.Gate = &Gate{}
	}
	s := &set{news: &news{ch: make(chan struct{})}}
	if opt.Inherit != nil {
		s.news = opt.Inherit.own.news
	}
	s.now.Store(&snapshot{})
	return &Registry{own: s, opt: opt}
}

// Gate returns the gate that this registry, or view, calls through.
func (r *Registry) Gate() *Gate { return r.opt.Gate }

// Add registers tools, all or none. A bad or taken name is an error; so is a
// name that differs from a taken one by case alone. A tool's Spec is read
// once, here; its schema is compiled at its first call.
func (r *Registry) Add(tools ...Tool) error {
	if r.view {
		return errors.New("adding tools to a view of a registry")
	}
	s := r.own
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(s.now.Load().order, tools)
}

// add is called with the lock held.
func (s *set) add(old []*entry, tools []Tool) error {
	fresh := make([]*entry, 0, len(tools))
	for _, t := range tools {
		e, err := newEntry(t)
		if err != nil {
			return err
		}
		fresh = append(fresh, e)
	}
	taken := make(map[string]string, len(old)+len(fresh))
	for _, e := range old {
		taken[strings.ToLower(e.spec.Name)] = e.spec.Name
	}
	for _, e := range fresh {
		fold := strings.ToLower(e.spec.Name)
		if have, ok := taken[fold]; ok {
			return fmt.Errorf("adding tool %q: the name is taken by %q", e.spec.Name, have)
		}
		taken[fold] = e.spec.Name
	}
	s.replace(slices.Concat(old, fresh))
	return nil
}

// Remove takes a tool away and reports whether it was there. Calls that run
// are not disturbed. Inherited tools, and those that a view leaves out, stay.
func (r *Registry) Remove(name string) bool {
	s := r.own
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.now.Load().byName[name]
	if !ok || !r.keeps(e.spec) {
		return false
	}
	s.replace(slices.DeleteFunc(slices.Clone(s.now.Load().order), func(o *entry) bool { return o == e }))
	return true
}

// Replace takes tools away by name and registers others, in one step: no call
// finds the one gone and the other not yet there. It is all or nothing, as Add.
// Calls that run are not disturbed.
func (r *Registry) Replace(names []string, tools ...Tool) error {
	if r.view {
		return errors.New("replacing tools in a view of a registry")
	}
	s := r.own
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := slices.DeleteFunc(slices.Clone(s.now.Load().order), func(e *entry) bool { return slices.Contains(names, e.spec.Name) })
	return s.add(kept, tools)
}

// replace is called with the lock held.
func (s *set) replace(order []*entry) {
	next := &snapshot{order: order, byName: make(map[string]*entry, len(order))}
	for _, e := range order {
		next.byName[e.spec.Name] = e
	}
	s.now.Store(next)
	s.news.mu.Lock()
	defer s.news.mu.Unlock()
	close(s.news.ch)
	s.news.ch = make(chan struct{})
}

// Changed returns a channel that is closed at the next change of the tools. A
// watcher takes it before it reads the tools, then waits, then takes a new one.
// It may be closed for a change that a view does not show.
func (r *Registry) Changed() <-chan struct{} {
	n := r.own.news
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ch
}

// Get finds a tool by its name.
func (r *Registry) Get(name string) (Tool, bool) {
	e, ok := r.find(name)
	if !ok {
		return nil, false
	}
	return e.tool, true
}

// Spec finds a tool's description by its name.
func (r *Registry) Spec(name string) (Spec, bool) {
	e, ok := r.find(name)
	if !ok {
		return Spec{}, false
	}
	return e.spec, true
}

// Has reports whether a tool of that name is there.
func (r *Registry) Has(name string) bool {
	_, ok := r.find(name)
	return ok
}

// All returns the tools in the order in which they were added, inherited ones last.
func (r *Registry) All() []Tool {
	es := r.entries()
	out := make([]Tool, len(es))
	for i, e := range es {
		out[i] = e.tool
	}
	return out
}

// Names returns the tools' names in the order of All.
func (r *Registry) Names() []string {
	es := r.entries()
	out := make([]string, len(es))
	for i, e := range es {
		out[i] = e.spec.Name
	}
	return out
}

// Filter is a live view of the tools that keep accepts: what is added or
// removed later shows in it.
func (r *Registry) Filter(keep func(Spec) bool) *Registry {
	v := *r
	v.keep = append(slices.Clip(r.keep), keep)
	v.view = true
	return &v
}

// Under is a live view of the same tools behind another gate, a child's.
func (r *Registry) Under(g *Gate) *Registry {
	v := *r
	v.opt.Gate = g
	v.view = true
	return &v
}

func (r *Registry) keeps(s Spec) bool {
	for _, keep := range r.keep {
		if !keep(s) {
			return false
		}
	}
	return true
}

func (r *Registry) find(name string) (*entry, bool) {
	e, ok := r.own.now.Load().byName[name]
	if !ok && r.opt.Inherit != nil {
		e, ok = r.opt.Inherit.find(name)
	}
	if !ok || !r.keeps(e.spec) {
		return nil, false
	}
	return e, true
}

func (r *Registry) entries() []*entry {
	own := r.own.now.Load()
	all := own.order
	if r.opt.Inherit != nil {
		all = slices.Clone(all)
		for _, e := range r.opt.Inherit.entries() {
			if own.byName[e.spec.Name] == nil {
				all = append(all, e)
			}
		}
	}
	if len(r.keep) == 0 {
		return all
	}
	kept := make([]*entry, 0, len(all))
	for _, e := range all {
		if r.keeps(e.spec) {
			kept = append(kept, e)
		}
	}
	return kept
}
