package files

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"slices"
	"sync"
	"time"
)

// State remembers, for one session, which files were read and as what. Edit
// refuses a file that was not read, and both Edit and Write one that changed
// since. Implementations are safe for concurrent use.
type State interface {
	Seen(name string) (Stamp, bool) // name is a virtual path
	// Saw replaces the stamp of a file. That it was changed stays true.
	Saw(name string, s Stamp)
}

// Stamp is what a file was when it was last read or written.
type Stamp struct {
	Size    int64     `json:"size"`
	ModTime time.Time `json:"modTime"`
	// Sum is the SHA-256 of the content, in hex. It is empty for files over
	// hashMax, which are told apart by size and time.
	Sum string `json:"sum,omitempty"`
	// Changed says that the session has written the file.
	Changed bool `json:"changed,omitempty"`
}

// hashMax bounds the cost of a Stamp.
const hashMax = 4 << 20

// stampWritten is the stamp of a file that was just written.
func stampWritten(info fs.FileInfo, data []byte) Stamp {
	s := stamp(info, data)
	s.Changed = true
	return s
}

func stamp(info fs.FileInfo, data []byte) Stamp {
	s := Stamp{Size: int64(len(data))}
	if info != nil {
		s.Size, s.ModTime = info.Size(), info.ModTime()
	}
	if data != nil && len(data) <= hashMax {
		sum := sha256.Sum256(data)
		s.Sum = hex.EncodeToString(sum[:])
	}
	return s
}

// same compares a stamp with one made just now. A sum decides where both have
// one: a file may be touched without being changed.
func (s Stamp) same(now Stamp) bool {
	if s.Sum != "" && now.Sum != "" {
		return s.Sum == now.Sum
	}
	return s.Size == now.Size && s.ModTime.Equal(now.ModTime)
}

// Memory is a State that lives as long as the process. It marshals to JSON,
// for those who want to keep it longer. The zero value is ready.
type Memory struct {
	mu   sync.Mutex
	seen map[string]Stamp
}

// Seen implements State.
func (m *Memory) Seen(name string) (Stamp, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.seen[name]
	return s, ok
}

// Saw implements State.
func (m *Memory) Saw(name string, s Stamp) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen == nil {
		m.seen = make(map[string]Stamp)
	}
	s.Changed = s.Changed || m.seen[name].Changed
	m.seen[name] = s
}

// Changed lists the files that the session has written, in order.
func (m *Memory) Changed() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []string
	for name, s := range m.seen {
		if s.Changed {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// MarshalJSON implements json.Marshaler.
func (m *Memory) MarshalJSON() ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return json.Marshal(m.seen)
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Memory) UnmarshalJSON(b []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return json.Unmarshal(b, &m.seen)
}
