package app

import (
	"github.com/elfhost/elfhost/internal/trust"
)

// Trusts reports whether the person trusts the workspace's folder as it is at
// this moment. It reads the files that count each time: what a tool, or
// anybody else, changes in them is not trusted any more.
func (a *App) Trusts() bool {
	st, _, err := trust.Check(a.Paths, a.Dir)
	return err == nil && st == trust.Trusted
}

// trusts is Trusts at the start of a session, with a word about what does not
// take effect.
func (a *App) trusts() bool {
	st, s, err := trust.Check(a.Paths, a.Dir)
	switch {
	case err != nil:
		a.note("this folder is not trusted: %v", err)
	case st == trust.Unknown:
		a.note("this folder is not trusted: what its files start or widen (%d of them) has no effect; `elfhost trust` shows them", len(s.Items))
	case st == trust.Changed:
		a.note("this folder has changed since it was trusted: what its files start or widen has no effect; `elfhost trust` shows what changed")
	}
	return err == nil && st == trust.Trusted
}
