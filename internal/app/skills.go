package app

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/elfhost/elfhost/builtins/skills"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/internal/config"
)

// skillsInPrompt is how many bytes of the system prompt tell of skills.
const skillsInPrompt = 3 << 10

// projectSkills are the folders of a project that hold skills, ours first,
// then those of other agents.
var projectSkills = []string{config.ProjectDir + "/skills", ".claude/skills", ".agents/skills"}

// packageMount is where the files of installed packages lie, to be read.
const packageMount = "/skills-hub"

// skillMounts are the person's own skill folders, which lie outside of the
// workspace and are only read. Those that are not there show once they are made.
func (a *App) skillMounts() []reach.Mount {
	own := []reach.Mount{{Name: "/skills", Dir: filepath.Join(a.Paths.Config, "skills")}}
	if home := a.env("HOME"); filepath.IsAbs(home) {
		own = append(own,
			reach.Mount{Name: "/skills-claude", Dir: filepath.Join(home, ".claude", "skills")},
			reach.Mount{Name: "/skills-agents", Dir: filepath.Join(home, ".agents", "skills")})
	}
	own = append(own, reach.Mount{Name: packageMount, Dir: Store(a.Paths).FilesDir()})
	for i := range own {
		own[i].ReadOnly, own[i].Late = true, true
	}
	return own
}

// ownSkills are those mounts.
func (a *App) ownSkills() (out []reach.Mount) {
	for _, m := range a.Tree.Mounts() {
		if strings.HasPrefix(m.Name, "/skills") {
			out = append(out, m)
		}
	}
	return out
}

// Skills is where the skills of this session are found.
func (a *App) Skills() *skills.Shelf {
	o := skills.Options{Tree: a.Tree, Narrow: a.narrow, Packages: a.packageSkills}
	if a.acp() {
		o.Reader, o.Shell = "ReadFile", "Shell"
	}
	for _, m := range a.ownSkills() {
		if m.Name == packageMount {
			continue
		}
		o.Folders = append(o.Folders, skills.Folder{Dir: m.Name, Source: skills.User})
	}
	for _, dir := range projectSkills {
		o.Folders = append(o.Folders, skills.Folder{Dir: policy.Workspace + "/" + dir, Source: skills.Project})
	}
	return skills.New(o)
}

func skillTools(_ context.Context, a *App) ([]host.Tool, error) { return a.Skills().Tools(), nil }

// Rights are those of builtin tools in this session, with nobody to ask.
func (a *App) Rights() policy.Rights {
	return policy.Rights{Grants: a.Gate.Grants.Meet(a.Policy.Ceiling())}
}

// skillsText tells the model which skills there are, where it has the tool to
// read them.
func (a *App) skillsText(ctx context.Context) string {
	if !a.Registry.Has("read_skill") {
		return ""
	}
	all, err := a.Skills().All(ctx, a.Rights())
	if err != nil {
		return ""
	}
	text, n := skills.Digest(all, skillsInPrompt)
	if n == 0 {
		return ""
	}
	return "# Skills\n\nInstructions for special kinds of work. When a task fits one, read it with read_skill first.\n\n" + text
}
