package app

import (
	"context"

	"github.com/elfhost/elfhost/builtins/skills"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/config/granted"
	"github.com/elfhost/elfhost/skillhub/keep"
)

// lockGrants are what elfhost.lock gives to exactly this plugin.
func (a *App) lockGrants(k granted.Key) []policy.Grant {
	if a.installs == nil {
		return nil
	}
	set := a.installs.now.Load()
	if stampOf(a.installs.store.Lock) != set.stamp { // revoked a moment ago, maybe
		a.installs.reload(context.Background())
		set = a.installs.now.Load()
	}
	if set.state == nil {
		return nil
	}
	p, ok := set.state.Lock.Find(k.Name)
	if !ok || k != pinKey(p.Name, p.Pin) {
		return nil
	}
	return parseGrants(p.Grants, a.installs.store.Lock)
}

// pinKey is what the grants of a version belong to (POL-08).
func pinKey(name string, p keep.Pin) granted.Key {
	return granted.Key{Publisher: p.Publisher, Name: name, Digest: p.Module.Hex(), Needs: p.Needs}
}

// parseGrants reads grants as the lock file has them. One that cannot be read
// gives nothing.
func parseGrants(texts []string, where string) (out []policy.Grant) {
	for _, text := range texts {
		if g, err := policy.ParseGrant(text); err == nil {
			g.Where = where
			out = append(out, g)
		}
	}
	return out
}

// packageSkills are the skills of installed packages, as the session's files
// have them.
func (a *App) packageSkills() (out []skills.Folder) {
	if a.installs == nil {
		return nil
	}
	set := a.installs.now.Load()
	if set.state == nil {
		return nil
	}
	for _, in := range set.state.Installed {
		if in.Disabled == "" && in.Skill != "" && a.installs.unusable(in, set.state.Lock) == "" {
			out = append(out, skills.Folder{
				Dir: packageMount + "/" + in.Digest.Hex(), Source: skills.Installed, Name: in.Name, Digest: string(in.Skill),
			})
		}
	}
	return out
}
