package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// SystemPolicyFile is where an administrator puts the policy.
const SystemPolicyFile = "/etc/elfhost/policy.toml"

// ProjectDir is the folder of a project's own files.
const ProjectDir = ".elfhost"

// Paths say where everything of a user lies. They come from the process's real
// environment alone: a project's .env moves nothing.
type Paths struct {
	Config       string // config.toml, policy.toml, grants.toml, skills/, commands/, agents/
	State        string // elfhost.db, audit/, packages/, sessions/, projects/
	Cache        string // compiled modules, the hub's index
	SystemPolicy string // SystemPolicyFile; another only in tests
	ExtraPolicy  string // what ELFHOST_POLICY names, absolute; may be ""
}

// FindPaths reads ELFHOST_HOME, ELFHOST_POLICY and the XDG variables through
// getenv, usually os.Getenv. Nothing is created.
func FindPaths(getenv func(string) string) (Paths, error) {
	p := Paths{SystemPolicy: SystemPolicyFile}
	if runtime.GOOS == "windows" {
		p.SystemPolicy = filepath.Join(getenv("ProgramData"), "elfhost", "policy.toml")
	}
	if extra := getenv("ELFHOST_POLICY"); extra != "" {
		abs, err := filepath.Abs(extra)
		if err != nil {
			return Paths{}, fmt.Errorf("ELFHOST_POLICY %q: %w", extra, err)
		}
		p.ExtraPolicy = abs
	}
	if home := getenv("ELFHOST_HOME"); home != "" {
		if !filepath.IsAbs(home) {
			return Paths{}, fmt.Errorf("ELFHOST_HOME %q is not an absolute path", home)
		}
		home = filepath.Clean(home)
		p.Config, p.State, p.Cache = home, filepath.Join(home, "state"), filepath.Join(home, "cache")
		return p, nil
	}
	home, err := os.UserHomeDir()
	if h := getenv("HOME"); h != "" && runtime.GOOS != "windows" {
		home, err = h, nil
	}
	pick := func(xdg string, rel ...string) string {
		// The XDG specification has relative values ignored.
		if d := getenv(xdg); d != "" && filepath.IsAbs(d) {
			return filepath.Join(d, "elfhost")
		}
		if home == "" {
			return ""
		}
		return filepath.Join(append([]string{home}, append(rel, "elfhost")...)...)
	}
	if runtime.GOOS == "windows" {
		p.Config, p.State, p.Cache = pick("XDG_CONFIG_HOME", "AppData", "Roaming"), pick("XDG_STATE_HOME", "AppData", "Local"), pick("XDG_CACHE_HOME", "AppData", "Local", "Temp")
	} else {
		p.Config, p.State, p.Cache = pick("XDG_CONFIG_HOME", ".config"), pick("XDG_STATE_HOME", ".local", "state"), pick("XDG_CACHE_HOME", ".cache")
	}
	if p.Config == "" || p.State == "" || p.Cache == "" {
		return Paths{}, fmt.Errorf("no home folder is known (%w); set ELFHOST_HOME", err)
	}
	return p, nil
}

// UserConfig is the user's config.toml.
func (p Paths) UserConfig() string { return filepath.Join(p.Config, "config.toml") }

// UserPolicy is the user's policy.toml.
func (p Paths) UserPolicy() string { return filepath.Join(p.Config, "policy.toml") }

// UserGrants holds what a person granted everywhere.
func (p Paths) UserGrants() string { return filepath.Join(p.Config, "grants.toml") }

// ProjectGrants holds what a person granted in one project. It lies in the
// user's state, keyed by the project's path: a repository cannot ship it.
func (p Paths) ProjectGrants(project string) string {
	return filepath.Join(p.ProjectState(project), "grants.toml")
}

// ProjectState is the user's own folder about one project, links resolved.
func (p Paths) ProjectState(project string) string {
	if abs, err := filepath.Abs(project); err == nil {
		project = abs
	}
	if real, err := filepath.EvalSymlinks(project); err == nil {
		project = real
	}
	sum := sha256.Sum256([]byte(project))
	return filepath.Join(p.State, "projects", hex.EncodeToString(sum[:12]))
}

// projectConfig is a project's own config.toml, below it.
const projectConfig = ProjectDir + "/config.toml"

// projectConfigFile is a project's own config.toml.
func projectConfigFile(project string) string {
	return filepath.Join(project, ProjectDir, "config.toml")
}

// ProjectPolicy is a project's own policy.toml, which can only narrow.
func ProjectPolicy(project string) string { return filepath.Join(project, ProjectDir, "policy.toml") }
