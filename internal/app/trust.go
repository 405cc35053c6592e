package app

import (
	"strings"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/trust"
)

// trusted looks at the workspace's folder. The function gives the files that
// the person trusts, as they were read for this answer; it is nil where the
// folder is not trusted as it is. What a tool, or anybody else, changes in them
// is not trusted any more.
func (a *App) trusted() (file func(path string) ([]byte, bool), s trust.Survey, st trust.Status, err error) {
	st, s, err = trust.Check(a.Paths, a.Dir)
	if err == nil && st == trust.Trusted {
		file = s.File
	}
	return file, s, st, err
}

// trustedContent is for those who read the files by themselves, by their
// virtual paths: what they have read takes effect if it is what the person
// trusts. It is nil where that is nothing.
func (a *App) trustedContent() func(file string, content []byte) bool {
	files, s, _, _ := a.trusted()
	if files == nil {
		return nil
	}
	return func(file string, content []byte) bool {
		name, ok := strings.CutPrefix(file, policy.Workspace+"/")
		return ok && s.Holds(name, content)
	}
}

// atStartTrusted is trusted with a word about what does not take effect.
func (a *App) atStartTrusted() func(path string) ([]byte, bool) {
	files, s, st, err := a.trusted()
	switch {
	case err != nil:
		a.note("this folder is not trusted: %v", err)
	case st == trust.Unknown:
		a.note("this folder is not trusted: what its files start or widen (%d of them) has no effect; `elfhost trust` shows them", len(s.Items))
	case st == trust.Changed:
		a.note("this folder has changed since it was trusted: what its files start or widen has no effect; `elfhost trust` shows what changed")
	}
	return files
}
