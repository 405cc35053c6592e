package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/term"
	"github.com/elfhost/elfhost/skillhub/keep"
	"github.com/elfhost/elfhost/skillhub/sign"
)

// withTexts adds the packages that are no plugin of this session: texts, and
// those that are not in use.
func withTexts(rows []app.Package, installed []keep.Installed) []any {
	out := []any{}
	for _, r := range rows {
		out = append(out, r)
	}
	for _, in := range installed {
		if in.Module == "" || in.Disabled != "" || in.Broken != "" {
			out = append(out, infoOf(in))
		}
	}
	return out
}

func printOthers(s streams, installed []keep.Installed) error {
	for _, in := range installed {
		state := ""
		switch {
		case in.Broken != "":
			state = "cannot be used: " + in.Broken
		case in.Disabled != "":
			state = "disabled: " + in.Disabled
		case in.Module == "":
			state = "a text for the model"
		default:
			if in.Update != nil {
				fmt.Fprintf(s.out, "%s: version %s waits for a person: elfhost plugin update %s\n", in.Name, term.Line(in.Update.Version), in.Name)
			}
			continue
		}
		if _, err := fmt.Fprintf(s.out, "%s %s  (%s, %s)\n    %s\n", in.Name, term.Line(in.Version), term.Line(in.Source), in.Digest.Short(), term.Line(state)); err != nil {
			return err
		}
	}
	return nil
}

// packageInfo is what `plugin info --json` prints.
type packageInfo struct {
	Name     string   `json:"name"`
	Version  string   `json:"version"`
	Source   string   `json:"source"`
	Digest   string   `json:"digest"`
	Size     int64    `json:"size"`
	Signer   string   `json:"signer,omitempty"`
	KeyID    string   `json:"keyId,omitempty"`
	Tools    []string `json:"tools,omitempty"`
	Skill    bool     `json:"skill,omitempty"`
	Needs    []string `json:"needs,omitempty"`
	Grants   []string `json:"grants,omitempty"`
	Disabled string   `json:"disabled,omitempty"`
	Broken   string   `json:"broken,omitempty"`
	Pinned   string   `json:"pinned,omitempty"`
	Update   string   `json:"update,omitempty"` // a version that waits for a person
	Previous []string `json:"previous,omitempty"`
}

func infoOf(in keep.Installed) packageInfo {
	out := packageInfo{
		Name: in.Name, Version: in.Version, Source: in.Source, Digest: string(in.Digest), Size: in.Size, Signer: in.Signer,
		Skill: in.Skill != "", Grants: in.Grants, Disabled: in.Disabled, Broken: in.Broken, Pinned: in.Hold,
	}
	if in.Signer != "" {
		out.KeyID = sign.Signer{Key: in.Signer}.KeyID()
	}
	for _, t := range in.Tools {
		out.Tools = append(out.Tools, t.Name)
	}
	for _, n := range in.Manifest.Needs {
		out.Needs = append(out.Needs, strings.Split(policy.Grant{Cap: n.Cap, Scope: n.Scope}.String(), "\n")...)
	}
	if in.Update != nil {
		out.Update = in.Update.Version
	}
	for _, p := range in.Previous {
		out.Previous = append(out.Previous, p.Version)
	}
	return out
}

func pluginInfo(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "info NAME", Short: "Show an installed package: source, signer, needs, grants, versions", Args: exactly(1, "one package"),
		RunE: func(c *cobra.Command, args []string) error {
			return withApp(c.Context(), s, func(a *app.App) error {
				in, err := a.PackageNamed(args[0])
				if err != nil {
					return err
				}
				info := infoOf(in)
				if asJSON {
					return json.NewEncoder(s.out).Encode(info)
				}
				return info.print(s)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (p packageInfo) print(s streams) error {
	var b strings.Builder
	row := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-9s %s\n", label, term.Line(text))
		}
	}
	rows := func(label string, texts []string) {
		for _, t := range texts {
			row(label, t)
			label = ""
		}
	}
	row("package", p.Name+" "+p.Version)
	row("source", p.Source)
	row("digest", fmt.Sprintf("%s (%s)", p.Digest, bytesText(p.Size)))
	if p.Signer == "" {
		row("signed", "by nobody")
	} else {
		row("signed", fmt.Sprintf("%s (%s)", p.Signer, p.KeyID))
	}
	rows("tools", p.Tools)
	if p.Skill {
		row("skill", p.Name)
	}
	rows("asks", p.Needs)
	rows("holds", p.Grants)
	row("disabled", p.Disabled)
	row("broken", p.Broken)
	row("pinned", p.Pinned)
	row("update", p.Update)
	rows("previous", p.Previous)
	_, err := s.out.Write([]byte(b.String()))
	return err
}
