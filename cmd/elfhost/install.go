package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
	"github.com/elfhost/elfhost/skillhub"
)

// consent is how a person, or a script for them, agrees to a package.
type consent struct {
	accept  string
	grants  []string
	none    bool
	noInput bool
}

func (f *consent) register(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.accept, "accept", "", "for scripts: agree to exactly the screen with this digest")
	fl.StringArrayVar(&f.grants, "grant", nil, "with --accept: give only this, of what it asks for ('net.http https://a.example GET'); may be repeated")
	fl.BoolVar(&f.none, "grant-nothing", false, "with --accept: give nothing")
	fl.BoolVar(&f.noInput, "no-input", false, "never ask: what needs an answer is stored and not used")
	c.MarkFlagsMutuallyExclusive("grant", "grant-nothing")
}

func installVerb(s streams) *cobra.Command {
	var f consent
	var o app.InstallOptions
	var show bool
	c := &cobra.Command{
		Use: "install PACKAGE", Short: "Install a tool or a skill that others made",
		Long: `Install a package: fetch it, verify it, and show what it is, who signed it, what
it asks for and why, what its code could do at the most and what is unusual about
it. Then you grant all of it, some, or nothing; the default is no. A package that
can do nothing and asks for nothing is installed without a question.

PACKAGE is [HUB/]NAME[@VERSION], a folder, a .elfpkg file, a module or a folder in
another format that elfhost knows, https://…#sha256=DIGEST, or
oci://HOST/REPOSITORY[:TAG].

With nobody there to ask, the package is stored and not used.`,
		Example: `  elfhost install ./my-tool
  elfhost install acme/fetch
  elfhost install acme/fetch --accept sha256:…   exactly the screen that was shown`,
		Args: exactly(1, "one package"),
		RunE: func(c *cobra.Command, args []string) error {
			ref, err := skillhub.ParseRef(args[0])
			if err != nil {
				return fault.Wrap("E1001", "`elfhost install --help` shows the forms of a package's name", err)
			}
			a, err := openQuiet(c.Context(), s)
			if err != nil {
				return err
			}
			defer a.Close(context.WithoutCancel(c.Context()))
			cand, err := a.Prepare(c.Context(), ref, o)
			if err != nil {
				return err
			}
			defer cand.Close()
			if show {
				return showScreen(s, cand)
			}
			return f.install(c.Context(), s, cand)
		},
	}
	f.register(c)
	fl := c.Flags()
	fl.BoolVar(&o.WithoutScripts, "without-scripts", false, "leave scripts out, rather than refuse the package")
	fl.BoolVar(&o.Downgrade, "allow-downgrade", false, "take an older version than the installed one")
	fl.BoolVar(&show, "show", false, "print the screen and its digest, and install nothing")
	c.MarkFlagsMutuallyExclusive("show", "accept")
	return c
}

// pluginInstall is the same verb under `plugin`.
func pluginInstall(s streams) *cobra.Command { return installVerb(s) }

func showScreen(s streams, c *app.Candidate) error {
	text, err := c.Screen()
	if err != nil {
		return err
	}
	digest, err := c.Accept()
	if err == nil {
		_, err = fmt.Fprintf(s.out, "%s  accept   %s\n", text, digest)
	}
	return err
}

// install brings a candidate to its end: installed, stored, or refused.
func (f *consent) install(ctx context.Context, s streams, c *app.Candidate) error {
	switch {
	case c.Quiet():
		c.AsBefore = true
		return f.commit(ctx, s, c, c.Carried())
	case c.Agreed() && c.Old.Disabled != "":
		return fault.New("E1203", "`elfhost plugin enable "+c.Manifest.Name+"` takes it into use again, with what was granted to it",
			"%s %s is installed already, and disabled: %s", c.Manifest.Name, term.Line(c.Manifest.Version), term.Line(c.Old.Disabled))
	case c.Agreed() && !c.Whole(ctx): // files are missing: back to what was agreed to
		return f.commit(ctx, s, c, c.Carried())
	case c.Agreed():
		_, err := fmt.Fprintf(s.out, "%s %s is installed already\n", c.Manifest.Name, term.Line(c.Manifest.Version))
		return err
	}
	digest, err := c.Accept()
	if err != nil {
		return err
	}
	switch {
	case f.accept == string(digest):
		grants, err := f.chosen(c)
		if err != nil {
			return err
		}
		return f.commit(ctx, s, c, grants)
	case f.accept != "":
		text, _ := c.Screen()
		fmt.Fprint(s.err, text)
		return fault.New("E1327", "the screen above has the digest "+string(digest), "--accept names another screen than that of %s %s", c.Manifest.Name, term.Line(c.Manifest.Version))
	case f.noInput || !term.IsTerminal(s.in):
		return f.store(ctx, s, c, digest)
	}
	return f.ask(ctx, s, c)
}

func (f *consent) commit(ctx context.Context, s streams, c *app.Candidate, grants []policy.Grant) error {
	err := c.Commit(ctx, grants, func(p abi.Progress) {
		if p.Message != "" {
			fmt.Fprintf(s.err, "elfhost: %s\n", term.Line(p.Message))
		}
	})
	if err != nil {
		return err
	}
	holds := "nothing granted"
	switch {
	case len(c.Manifest.Needs) == 0:
		holds = "it asks for no rights"
	case len(grants) > 0:
		holds = fmt.Sprintf("%d of %d scopes granted", len(grants), len(c.Asked()))
	}
	word := "installed"
	if c.Old != nil && c.Old.Digest != c.Pin.Digest {
		word = "updated " + term.Line(c.Old.Version) + " →"
	}
	_, err = fmt.Fprintf(s.out, "%s %s %s (%s; %s)\n", c.Manifest.Name, word, term.Line(c.Manifest.Version), c.Pin.Digest.Short(), holds)
	return err
}

// chosen are the grants of --grant, or all that is asked for.
func (f *consent) chosen(c *app.Candidate) ([]policy.Grant, error) {
	if f.none {
		return nil, nil
	}
	if len(f.grants) == 0 {
		return c.Asked(), nil
	}
	var out []policy.Grant
	for _, text := range f.grants {
		g, err := policy.ParseGrant(text)
		if err != nil {
			return nil, fault.Wrap("E1001", "a grant is CAPABILITY SCOPE, such as 'net.http https://a.example GET'", err)
		}
		out = append(out, g)
	}
	return out, nil
}

// store keeps the package for a person who is not here.
func (f *consent) store(ctx context.Context, s streams, c *app.Candidate, digest skillhub.Digest) error {
	text, err := c.Screen()
	if err != nil {
		return err
	}
	fmt.Fprint(s.err, text)
	if err := c.Store(ctx); err != nil {
		return err
	}
	verb := "enable"
	if c.Old != nil && c.Old.Digest != c.Pin.Digest {
		verb = "update"
	}
	return fault.New("E1326", fmt.Sprintf("a person agrees with `elfhost plugin %s %s`; a script with --accept %s", verb, c.Manifest.Name, digest),
		"%s %s is stored, and not in use: nobody was there to agree to it", c.Manifest.Name, term.Line(c.Manifest.Version))
}

// ask shows the screen to a person.
func (f *consent) ask(ctx context.Context, s streams, c *app.Candidate) error {
	text, err := c.Screen()
	if err != nil {
		return err
	}
	p := &term.Prompt{In: s.in, Out: s.err, Style: term.StyleOf(s.err, os.Getenv)}
	asked := c.Asked()
	answers := []string{"install it, and grant everything that it asks for", "install it, and choose what to grant", "install it, and grant nothing"}
	if len(asked) == 0 {
		answers = []string{"install it"}
	}
	no := len(answers)
	answers = append(answers, "no")
	n, err := p.Choose(ctx, text, answers, no)
	switch {
	case err != nil:
		return err
	case n == no:
		return fault.New("E1202", "", "%s was not installed", c.Manifest.Name)
	case n == 0:
		return f.commit(ctx, s, c, asked)
	case n == 2:
		return f.commit(ctx, s, c, nil)
	}
	grants, err := choose(ctx, p, asked)
	if err != nil {
		return err
	}
	return f.commit(ctx, s, c, grants)
}

// choose asks about each scope.
func choose(ctx context.Context, p *term.Prompt, asked []policy.Grant) (out []policy.Grant, err error) {
	for i, g := range asked {
		n, err := p.Choose(ctx, fmt.Sprintf("%d of %d: %s", i+1, len(asked), term.Line(g.String())), []string{"grant it", "grant something narrower", "no"}, 2)
		if err != nil {
			return nil, err
		}
		switch n {
		case 0:
			out = append(out, g)
		case 1:
			narrow, err := narrower(ctx, p, g)
			if err != nil {
				return nil, err
			}
			out = append(out, narrow...)
		}
	}
	return out, nil
}

// narrower reads a scope; an empty line gives nothing.
func narrower(ctx context.Context, p *term.Prompt, asked policy.Grant) ([]policy.Grant, error) {
	for range 3 {
		text, err := p.Ask(ctx, "  scope for "+string(asked.Cap)+" (Enter: none): ")
		if err != nil || text == "" {
			return nil, err
		}
		g, err := policy.ParseGrant(string(asked.Cap) + " " + text)
		if err == nil {
			return []policy.Grant{g}, nil
		}
		fmt.Fprintf(p.Out, "  %s\r\n", term.Line(err.Error()))
	}
	return nil, errors.New("no scope that can be read was given: nothing was installed")
}
