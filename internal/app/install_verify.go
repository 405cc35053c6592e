package app

import (
	"context"
	"slices"

	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/skillhub/keep"
)

// ForgetKey forgets the key of a publisher: the next one is pinned anew.
func (a *App) ForgetKey(ctx context.Context, publisher string) error {
	err := a.change(ctx, func(l *keep.Lock) error {
		if _, ok := l.Publishers[publisher]; !ok {
			return fault.New("E1304", "`elfhost key list` shows them", "no key of the publisher %q is pinned", publisher)
		}
		delete(l.Publishers, publisher)
		return nil
	})
	if err == nil {
		a.KeepGrant("forgot the key of the publisher " + publisher)
	}
	return err
}

// Publishers are the pinned keys, by publisher.
func (a *App) Publishers() (map[string]string, error) {
	l, err := keep.ReadLock(a.installs.store.Lock)
	if err != nil {
		return nil, fault.Wrap("E1323", "", err)
	}
	return l.Publishers, nil
}

// Verified is what Verify says of a package.
type Verified struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Edited  []string `json:"edited,omitempty"` // files that are not those of the package
	Problem string   `json:"problem,omitempty"`
}

// OK reports whether the package is as it was installed.
func (v Verified) OK() bool { return len(v.Edited) == 0 && v.Problem == "" }

// VerifyPackages holds what lies in the store against elfhost.lock: nil names
// mean all. It repairs nothing.
func (a *App) VerifyPackages(ctx context.Context, names []string) ([]Verified, error) {
	l, err := keep.ReadLock(a.installs.store.Lock)
	if err != nil {
		return nil, fault.Wrap("E1323", "", err)
	}
	for _, n := range names {
		if _, ok := l.Find(n); !ok {
			return nil, noPackage(n)
		}
	}
	out := []Verified{}
	for _, p := range l.Packages {
		if len(names) > 0 && !slices.Contains(names, p.Name) {
			continue
		}
		v := Verified{Name: p.Name, Version: p.Version}
		if v.Edited, err = a.installs.store.Verify(ctx, p.Pin); err != nil {
			v.Problem = err.Error()
		}
		out = append(out, v)
	}
	return out, ctx.Err()
}
