package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

// finding is one thing that works on this machine, or does not.
type finding struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Says string `json:"says"`
	Fix  string `json:"fix,omitempty"`
	Must bool   `json:"must"` // elfhost does not work without it
}

func doctorVerb(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "doctor", Short: "Check what works on this machine, with the fix for what does not", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			found := diagnose(c.Context(), *s.offline)
			if asJSON {
				if err := json.NewEncoder(s.out).Encode(found); err != nil {
					return err
				}
			} else {
				printFindings(s, found)
			}
			for _, f := range found {
				if f.Must && !f.OK {
					return &exitStatus{fault.ExitFailed}
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printFindings(s streams, found []finding) {
	style := term.StyleOf(s.out, os.Getenv)
	for _, f := range found {
		mark := style.Green("ok  ")
		switch {
		case !f.OK && f.Must:
			mark = style.Red("FAIL")
		case !f.OK:
			mark = style.Yellow("-   ")
		}
		fmt.Fprintf(s.out, "%s  %-15s %s\n", mark, f.Name, term.Line(f.Says))
		if f.Fix != "" {
			fmt.Fprintf(s.out, "      %-15s fix: %s\n", "", term.Line(f.Fix))
		}
	}
}

// diagnose looks at everything; a part that fails does not hide the next.
func diagnose(ctx context.Context, offline bool) []finding {
	v := buildInfo()
	out := []finding{{Name: "elfhost", OK: true, Must: true, Says: v.Version + ", " + v.ABI + ", " + v.Platform}}
	paths, err := config.FindPaths(os.Getenv)
	if err != nil {
		return append(out, finding{Name: "home", Must: true, Says: err.Error(), Fix: "set ELFHOST_HOME to an absolute folder"})
	}
	for _, f := range []struct{ name, dir string }{{"configuration", paths.Config}, {"state", paths.State}, {"cache", paths.Cache}} {
		out = append(out, writable(f.name, f.dir))
	}
	a, err := app.Open(ctx, app.Options{Offline: offline})
	if err != nil {
		return append(out, unopened(err))
	}
	defer a.Close(context.WithoutCancel(ctx))
	out = append(out, policyFindings(a, paths)...)
	out = append(out, kernel(ctx, a), compiler(), auditFinding(paths))
	out = append(out, pluginFindings(a), secretFinding(a), modelFinding(ctx, a))
	return out
}

// unopened says why no session starts here.
func unopened(err error) finding {
	f := finding{Name: "session", Must: true, Says: err.Error(), Fix: "`elfhost explain` lists the error codes"}
	if e, ok := errors.AsType[*fault.Error](err); ok {
		f.Fix = e.Hint
		if e.Code == "E1002" {
			f.Name = "rules"
		}
	}
	return f
}

func writable(name, dir string) finding {
	f := finding{Name: name, Must: true, OK: true, Says: dir}
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		var tmp *os.File
		if tmp, err = os.CreateTemp(dir, ".doctor-*"); err == nil {
			tmp.Close()
			err = os.Remove(tmp.Name())
		}
	}
	if err != nil {
		f.OK, f.Says, f.Fix = false, err.Error(), "make the folder writable, or set ELFHOST_HOME"
	}
	return f
}

func policyFindings(a *app.App, paths config.Paths) []finding {
	var files []string
	for _, f := range []string{paths.SystemPolicy, paths.UserPolicy(), config.ProjectPolicy(a.Dir), paths.ExtraPolicy} {
		if _, err := os.Stat(f); f != "" && err == nil {
			files = append(files, f)
		}
	}
	says := "no policy file: only what a person grants limits anything"
	if len(files) > 0 {
		says = "in force: " + strings.Join(files, ", ")
	}
	out := []finding{{Name: "policy", OK: true, Says: says}}
	for _, n := range a.TakeNotes() {
		out = append(out, finding{Name: "note", Says: n})
	}
	if n := a.Policy.Network(); n.Proxy != "" || n.CAFile != "" || n.Off {
		says := "network off"
		if !n.Off {
			says = "proxy " + config.ShowProxy(n.Proxy) + " ca_file " + n.CAFile
		}
		out = append(out, finding{Name: "network", OK: true, Says: says})
	}
	return out
}

// kernel says what holds the programs that Bash and exec run.
func kernel(ctx context.Context, a *app.App) finding {
	sb := a.Runner.Sandbox.Verify(ctx)
	f := finding{Name: "kernel sandbox", OK: sb.Kind != "", Says: "programs run under " + sb.Kind}
	var why []string
	for _, r := range sb.Tried {
		why = append(why, r.Kind+": "+r.Why)
		if f.Fix == "" {
			f.Fix = r.Fix
		}
	}
	if len(why) > 0 {
		f.Says += " (" + strings.Join(why, "; ") + ")"
	}
	if sb.Kind != "" {
		return f
	}
	f.Says = "none works: every command asks and runs unsandboxed (" + strings.Join(why, "; ") + ")"
	if must, where := a.Policy.RequireSandbox(); must {
		f.Says, f.Must = "none works, and "+where+" requires one: Bash is off ("+strings.Join(why, "; ")+")", true
	}
	return f
}

// compiler says what holds the process that makes machine code of plugins.
func compiler() finding {
	by := sandbox.CompilerConfinement()
	f := finding{Name: "compiler", OK: len(by) == 2, Says: "plugins are compiled in a child with limits of memory, processor time and output"}
	if len(by) > 0 {
		f.Says += ", under " + strings.Join(by, " and ")
	}
	if !f.OK && runtime.GOOS == "linux" {
		f.Says += "; this kernel has not all of Landlock and seccomp"
		f.Fix = "a kernel of 5.13 or later with CONFIG_SECURITY_LANDLOCK and CONFIG_SECCOMP_FILTER"
	}
	return f
}

func auditFinding(paths config.Paths) finding {
	rep, err := verifyAudit(paths, "")
	if err != nil {
		return finding{Name: "audit log", Must: true, Says: err.Error()}
	}
	if rep.Bad != nil {
		return finding{Name: "audit log", Must: true, Says: rep.Bad.Error(), Fix: "keep it as evidence, then move " + app.AuditDir(paths) + " away"}
	}
	return finding{Name: "audit log", OK: true, Must: true, Says: fmt.Sprintf("whole, %d records in %s", rep.Records, app.AuditDir(paths))}
}

func pluginFindings(a *app.App) finding {
	here := a.Packages()
	if len(here) == 0 {
		return finding{Name: "plugins", Says: "none in this build", Fix: "make plugins, then build again"}
	}
	var names []string
	for _, p := range here {
		names = append(names, p.Tools...)
	}
	return finding{Name: "plugins", OK: true, Says: strings.Join(names, ", ")}
}

func secretFinding(a *app.App) finding {
	return finding{Name: "secrets", OK: true, Says: "kept in " + a.Secrets.Store.Where()}
}

func modelFinding(ctx context.Context, a *app.App) finding {
	m, err := a.Model(ctx, "")
	if err != nil {
		return finding{Name: "model", Says: err.Error(), Fix: "set ANTHROPIC_API_KEY or OPENAI_API_KEY, or start Ollama"}
	}
	return finding{Name: "model", OK: true, Says: m.Name}
}
