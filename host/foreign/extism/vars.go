package extism

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox"
)

// vars are a plugin's variables, kept for each session while the plugin is
// loaded. Calls at once see each other's writes, the last one wins.
type vars struct {
	max int64 // bytes of a session's names and values; 0 or less: disabled

	mu       sync.Mutex
	sessions map[string]*store
	order    []string // the oldest session first
}

type store struct {
	values map[string][]byte
	size   int64
}

// maxSessions bounds what a host that runs for long keeps.
const maxSessions = 64

// perVar is what Extism adds for each variable.
const perVar = 40

func newVars(most int64) *vars { return &vars{max: most, sessions: map[string]*store{}} }

// session finds a session's variables. mu is held.
func (v *vars) session(name string) *store {
	s := v.sessions[name]
	if s != nil {
		return s
	}
	if len(v.order) == maxSessions {
		delete(v.sessions, v.order[0])
		v.order = v.order[1:]
	}
	s = &store{values: map[string][]byte{}}
	v.sessions[name] = s
	v.order = append(v.order, name)
	return s
}

func (v *vars) get(session, name string) ([]byte, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	b, ok := v.session(session).values[name]
	return b, ok
}

// set keeps a value, or removes it when b is nil.
func (v *vars) set(session, name string, b []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.session(session)
	size := s.size
	if old, ok := s.values[name]; ok {
		size -= int64(len(name)+len(old)) + perVar
	}
	if b == nil {
		delete(s.values, name)
		s.size = size
		return nil
	}
	if size += int64(len(name)+len(b)) + perVar; size > v.max {
		return abi.ErrTooLarge
	}
	s.values[name], s.size = b, size
	return nil
}

func (p *plugin) varGet(_ context.Context, g *sandbox.Guest, s []uint64) {
	name := Read(g, s[0])
	Free(g, s[0])
	s[0] = 0
	if g.Early() {
		return
	}
	b, err := g.Effect(EnvModule+".var_get", name, func() ([]byte, error) {
		b, ok := p.vars.get(g.Caller().Session, string(name))
		if !ok {
			return nil, nil
		}
		return append([]byte{1}, b...), nil // a value may be empty
	})
	if err == nil && len(b) > 0 {
		s[0] = room(g, b[1:])
	}
}

func (p *plugin) varSet(_ context.Context, g *sandbox.Guest, s []uint64) {
	if p.vars.max <= 0 {
		fail("this plugin's manifest disables variables (max_var_bytes is 0): %w", abi.ErrUnsupported)
	}
	name := Read(g, s[0])
	var value []byte
	if s[1] != 0 {
		if value = Read(g, s[1]); value == nil {
			value = []byte{}
		}
	}
	Free(g, s[0])
	Free(g, s[1])
	if g.Early() {
		return // what initialisation sets would be everybody's
	}
	asked := binary.LittleEndian.AppendUint32(nil, uint32(len(name)))
	asked = append(append(asked, name...), value...)
	_, err := g.Effect(EnvModule+".var_set", asked, func() ([]byte, error) {
		return nil, p.vars.set(g.Caller().Session, string(name), value)
	})
	if err != nil {
		fail("the plugin's variables are over %d bytes: %w", p.vars.max, err)
	}
}
