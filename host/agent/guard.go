package agent

import (
	"crypto/sha256"
	"fmt"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
)

// guard notices a model that goes in circles: steps that only repeat calls of
// this run. A step with a call that was not made before is progress and
// starts the count anew, so that running the same tests after each edit is
// none of its business.
type guard struct {
	limit   int
	calls   map[[32]byte]bool // name and arguments
	answers map[[32]byte]bool // and result
	again   int               // steps in a row with known calls only
	stale   int               // and with known results only
}

// note looks at the calls of a step and its results, in the same order. The
// text, if any, is for the model; stop says that it had been told in vain. A
// call whose result still changes (a poll) may go on for longer.
func (g *guard) note(calls []model.Call, results []model.CallResult) (text string, stop bool) {
	if len(calls) == 0 {
		return "", false
	}
	if g.calls == nil {
		g.calls, g.answers = map[[32]byte]bool{}, map[[32]byte]bool{}
	}
	fresh, moved := false, false
	for i, c := range calls {
		key := sha256.Sum256([]byte(c.Name + "\x00" + c.Args))
		answer := sha256.Sum256(append(key[:], fingerprint(results[i].Result)...))
		fresh, moved = fresh || !g.calls[key], moved || !g.answers[answer]
		g.calls[key], g.answers[answer] = true, true
	}
	if fresh {
		g.again, g.stale = 1, 1
		return "", false
	}
	g.again++
	if moved {
		g.stale = 1
	} else {
		g.stale++
	}
	if g.stale >= 2*g.limit || g.again >= 6*g.limit {
		return "", true
	}
	if g.stale >= g.limit || g.again >= 3*g.limit {
		return fmt.Sprintf("[This is step %d in a row that only repeats calls you have made before. Use the results that you have, "+
			"try something else, or say what stands in the way. If you go on like this you will be stopped.]", g.again), false
	}
	return "", false
}

// fingerprint tells results apart.
func fingerprint(r abi.Result) []byte {
	h := sha256.New()
	for _, c := range r.Content {
		fmt.Fprintf(h, "%s\x00%s\x00%s\x00%x\x00", c.Type, c.Text, c.URI, c.Data)
	}
	h.Write(r.Structured)
	return h.Sum(nil)
}
