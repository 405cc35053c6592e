package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/policy/packages"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config/manifest"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
	"github.com/elfhost/elfhost/skillhub"
)

// explained is what `elfhost policy explain` says of one thing.
type explained struct {
	What     string             `json:"what"`
	Verdict  string             `json:"verdict"` // "allowed", "denied", "asks", "open"
	By       string             `json:"by,omitempty"`
	Findings []packages.Finding `json:"findings"`
	Then     string             `json:"then,omitempty"` // what else it takes
}

func policyExplain(s streams) *cobra.Command {
	var f sessionFlags
	var asJSON, plugin bool
	c := &cobra.Command{
		Use: "explain PACKAGE | TOOL JSON | CAPABILITY TARGET | ADDRESS", Short: "Say which file and line decides about a package or a call",
		Long: `Say what the policies here decide about a package, a call of a tool, or one use of
a capability, and by which file and line. Nothing is called, asked or installed.

A PACKAGE is named as for elfhost install. Of one that is neither installed nor a
file, rules that ask for more than its name tells are shown as open. An address
alone is a GET of it.`,
		Example: `  elfhost policy explain fetch@1.2.0
  elfhost policy explain ./my-plugin
  elfhost policy explain Bash '{"command": "git push"}'
  elfhost policy explain net.http GET https://api.example.com/v1`,
		Args: cobra.RangeArgs(1, 3),
		RunE: func(c *cobra.Command, args []string) error {
			f.noInput = true
			a, err := f.session(c.Context(), s, app.Options{})
			if err != nil {
				return err
			}
			defer a.Close(context.WithoutCancel(c.Context()))
			e, err := explain(c.Context(), a, args, plugin)
			if err != nil {
				return err
			}
			if asJSON {
				if e.Findings == nil {
					e.Findings = []packages.Finding{}
				}
				return json.NewEncoder(s.out).Encode(e)
			}
			return printExplained(s, e)
		},
	}
	f.register(c)
	c.Flags().BoolVar(&plugin, "plugin-use", false, "of a capability: as a plugin of others would use it")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func explain(ctx context.Context, a *app.App, args []string, plugin bool) (*explained, error) {
	word := args[0]
	switch {
	case abi.Capability(word).Known():
		return explainUse(a, args, plugin)
	case len(args) == 1 && isAddress(word):
		return explainUse(a, []string{string(abi.NetHTTP), word}, plugin)
	case len(args) == 2 || len(args) == 1 && a.Registry.Has(word):
		return explainCall(ctx, a, args)
	case len(args) == 1:
		return explainPackage(ctx, a, word)
	}
	return nil, fault.New("E1001", "`elfhost policy explain --help` has examples", "%q is no capability", word)
}

// isAddress reports an address alone, whose GET is meant. One that says which bytes
// lie there is a package's.
func isAddress(word string) bool {
	u, err := url.Parse(word)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && !strings.HasPrefix(u.Fragment, "sha256=")
}

// explainUse asks the ceilings of all layers about one use.
func explainUse(a *app.App, args []string, plugin bool) (*explained, error) {
	u := policy.Use{Cap: abi.Capability(args[0])}
	switch {
	case len(args) == 2 && u.Cap != abi.NetHTTP:
		u.Target = args[1]
	case len(args) == 2:
		u.Verb, u.Target = "GET", args[1]
	case len(args) == 3:
		u.Verb, u.Target = strings.ToUpper(args[1]), args[2]
	case u.Cap != abi.ClockFine:
		return nil, fault.New("E1001", "give a target too, such as: net.http GET https://api.example.com/v1", "%s alone is not a use", u.Cap)
	}
	if u.Cap == abi.Exec {
		u.Target = strings.Join(strings.Fields(u.Target), "\x00")
	}
	e := &explained{What: strings.Join(args, " "), Verdict: "allowed", Findings: a.Policy.Why(u, plugin)}
	for _, f := range e.Findings {
		if f.Effect == packages.Deny {
			e.Verdict = "denied"
		}
	}
	if e.Verdict == "allowed" {
		e.Then = "a tool or plugin still needs a grant for it: a policy gives nothing, it only limits"
	}
	return e, nil
}

// explainCall takes a call to a gate like the session's, with somebody who is
// asked and says nothing.
func explainCall(ctx context.Context, a *app.App, args []string) (*explained, error) {
	sp, ok := a.Registry.Spec(args[0])
	if !ok {
		return nil, fault.New("E1301", "`elfhost tools` lists them", "there is no tool %q", args[0])
	}
	input := json.RawMessage("{}")
	if len(args) == 2 {
		input = json.RawMessage(args[1])
	}
	var object map[string]any
	if err := json.Unmarshal(input, &object); err != nil {
		return nil, fault.New("E1003", "", "the arguments are not a JSON object: %w", err)
	}
	var v host.Verdict
	asked := &listener{}
	g := &host.Gate{
		Policy: a.Policy, Mode: a.Gate.Current(), Grants: a.Gate.Grants, Granted: a.Gate.Granted, Workspace: a.Gate.Workspace,
		Approver: asked, Memory: a.Gate.Memory, Unconfined: a.Gate.Unconfined,
		Audit: func(got host.Verdict) error { v = got; return nil },
	}
	err := g.Check(ctx, sp, host.Call{ID: "explain", Tool: sp.Name, Args: input, Caller: host.Caller{Session: a.Session}})
	e := &explained{What: strings.Join(args, " "), Verdict: "allowed", By: v.By}
	if line, ok := object["command"].(string); ok && (err == nil || asked.ask != nil) {
		if e.Findings = deniedShell(a, sp, line); e.Findings != nil {
			e.Verdict, e.By = "denied", e.Findings[0].Layer
			return e, nil
		}
	}
	if asked.ask != nil {
		e.Verdict, e.By = "asks", "person"
		e.Then = "a person is asked; with nobody there it is denied"
		for _, r := range a.Policy.Rules() {
			if r.Effect == policy.Ask && r.Pattern.String() == v.Rule {
				e.Findings = append(e.Findings, packages.Finding{Effect: packages.Open, Layer: r.Layer, Where: r.Where, Why: "the rule " + v.Rule + " wants a question"})
			}
		}
		return e, nil
	}
	var d *host.Denied
	if errors.As(err, &d) {
		e.Verdict, e.By = "denied", d.Layer
		e.Findings = append(e.Findings, packages.Finding{Effect: packages.Deny, Layer: d.Layer, Where: d.Where, Why: d.Why})
		return e, nil
	}
	if v.Where != "" || v.Rule != "" {
		e.Findings = append(e.Findings, packages.Finding{Effect: packages.Allow, Layer: v.By, Where: v.Where, Why: "the rule " + v.Rule + " covers it"})
	}
	e.Then = "what it reaches is checked again at each use"
	return e, nil
}

// deniedShell says which rules keep the shell from running at all, whatever a
// person answers to its question.
func deniedShell(a *app.App, sp host.Spec, line string) (out []packages.Finding) {
	if sp.Name != "Bash" || sp.Origin.Source != host.Builtin {
		return nil
	}
	for _, f := range a.Policy.Why(policy.Use{Cap: abi.Exec, Target: "bash\x00-c\x00" + line}, false) {
		if f.Effect == packages.Deny {
			out = append(out, f)
		}
	}
	return out
}

// listener hears a question and leaves it unanswered.
type listener struct{ ask *host.Ask }

func (l *listener) Approve(_ context.Context, a host.Ask) (host.Answer, error) {
	l.ask = &a
	return host.Answer{}, errors.New("it was not put to anybody")
}

func explainPackage(ctx context.Context, a *app.App, ref string) (*explained, error) {
	f, err := factsOf(ctx, a, ref)
	if err != nil {
		return nil, err
	}
	r := a.Policy.Package(f)
	what := strings.TrimSpace(f.Name + " " + f.Version)
	if what == "" {
		what = ref
	}
	e := &explained{What: what, Verdict: "allowed", Findings: r.Findings}
	switch {
	case len(r.Denied()) > 0:
		e.Verdict = "denied"
		return e, nil
	case len(r.Open()) > 0:
		e.Verdict = "open"
		return e, nil
	}
	var none []string
	for _, n := range f.Needs {
		if a.Policy.DescribePlugin(n.Cap) == "nothing" {
			none = append(none, string(n.Cap))
		}
	}
	if len(none) > 0 {
		e.Then = "of what it asks for, the policy leaves it nothing of " + strings.Join(none, ", ")
	}
	return e, nil
}

// factsOf says what is known of a package: of an archive all but who pinned its
// key, of a folder what its manifest says, of an installed package what is
// pinned, of any other name no more than the name.
func factsOf(ctx context.Context, a *app.App, ref string) (packages.Facts, error) {
	r, err := skillhub.ParseRef(ref)
	switch {
	case err != nil:
		return packages.Facts{}, fault.Wrap("E1001", "a package is a path, NAME or NAME@VERSION, or oci://HOST/REPOSITORY; a call is a tool and its JSON", err)
	case r.Kind == skillhub.Named:
		if f, ok := a.InstalledFacts(r.Name); ok && r.Hub == "" && (r.Version == "" || r.Version == f.Version) {
			return f, nil
		}
		return a.Known(r), nil
	case r.Kind != skillhub.Local:
		return a.Known(r), nil
	}
	return factsOfPath(ctx, r.Location)
}

// factsOfPath says what is known of an archive or a folder.
func factsOfPath(ctx context.Context, name string) (packages.Facts, error) {
	st, err := os.Stat(name)
	if err != nil {
		return packages.Facts{}, fault.Wrap("E1001", "", err)
	}
	if !st.IsDir() {
		return factsOfArchive(ctx, name)
	}
	m, err := manifest.ReadFile(filepath.Join(name, "elf.toml"))
	if err != nil {
		return packages.Facts{}, fault.Wrap("E1302", "", err)
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return packages.Facts{}, err
	}
	return packages.Facts{Name: m.Name, Version: m.Version, Publisher: m.Publisher, Needs: m.Needs, Hub: "file://" + filepath.ToSlash(abs)}, nil
}

func factsOfArchive(ctx context.Context, name string) (packages.Facts, error) {
	p, signer, err := publication(ctx, name)
	if err != nil {
		return packages.Facts{}, fault.Wrap("E1302", "", fmt.Errorf("reading the package %q: %w", name, err))
	}
	p.close()
	abs, err := filepath.Abs(name)
	if err != nil {
		return packages.Facts{}, err
	}
	m := p.Manifest
	f := packages.Facts{Name: m.Name, Version: m.Version, Publisher: m.Publisher, Needs: m.Needs, Digest: string(p.Digest), Hub: "file://" + filepath.ToSlash(abs)}
	if signer != nil {
		f.Key = signer.Key
	}
	return f, nil
}

func printExplained(s streams, e *explained) error {
	by := map[string]string{"safe": "the safe set", "mode": "the session's mode", "rule": "a remembered answer"}[e.By]
	if by == "" {
		by = e.By
	}
	if by != "" {
		by = " (" + by + ")"
	}
	fmt.Fprintf(s.out, "%s: %s%s\n", term.Line(e.What), e.Verdict, term.Line(by))
	for _, f := range e.Findings {
		where := f.Where
		if where == "" {
			where = f.Layer
		}
		fmt.Fprintf(s.out, "  %-5s  %s  %s\n", f.Effect, term.Line(where), term.Line(f.Why))
	}
	if len(e.Findings) == 0 && e.Verdict == "allowed" {
		fmt.Fprintln(s.out, "  no policy file says anything about it")
	}
	if e.Then != "" {
		fmt.Fprintf(s.out, "  %s\n", term.Line(e.Then))
	}
	return nil
}
