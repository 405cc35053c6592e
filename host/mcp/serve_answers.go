package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/elfhost/elfhost/host"
)

// maxAnswers is how many answers of one session are remembered.
const maxAnswers = 200

// answers are what the person behind one session over HTTP said until that ends.
// Whoever shows the session's id is that client: the id is sealed, and was given
// once. Servers that stand in for each other know the answers of all.
type answers struct {
	shared  Shared
	session string    // its digest
	until   time.Time // when the session's id expires
}

var _ host.Memory = (*answers)(nil)

func (a *answers) key(n int) string { return "said-" + a.session + "-" + strconv.Itoa(n) }

// Rules implements host.Memory. What cannot be read allows nothing.
func (a *answers) Rules() (out []host.Rule) {
	for n := range maxAnswers {
		b, known, err := a.shared.Value(a.key(n))
		if err != nil || !known {
			return out
		}
		var r host.Rule
		if json.Unmarshal(b, &r) == nil {
			out = append(out, r)
		}
	}
	return out
}

// Remember implements host.Memory.
func (a *answers) Remember(_ context.Context, r host.Rule) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	for n := range maxAnswers {
		if first, err := a.shared.Put(a.key(n), b, a.until); first || err != nil {
			return err
		}
	}
	return errors.New("too many answers of this session are remembered")
}
