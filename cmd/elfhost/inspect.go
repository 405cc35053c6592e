package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/foreign"
	"github.com/elfhost/elfhost/host/foreign/ironclaw"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/config/manifest"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

// inspected is what `plugin inspect --json` prints.
type inspected struct {
	sandbox.Inspection
	Format   string           `json:"format,omitempty"`   // of other people's plugins; "" is elf/1
	Manifest string           `json:"manifest,omitempty"` // the elf.toml beside the module, if one is there
	Needs    []abi.Need       `json:"needs,omitempty"`
	Missing  []abi.Capability `json:"missing,omitempty"` // imported, and not among the needs
}

func pluginInspect(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "inspect FILE", Short: "Say what a module could do at most, without running it",
		Long: "Read a module, or a plugin's folder, and say what it could do at the most, how close it comes to the limits,\nand whether elfhost would load it. With an elf.toml beside it: what it asks for, too.",
		Args: exactly(1, "one file"),
		RunE: func(_ *cobra.Command, args []string) error {
			in, err := inspect(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				enc := json.NewEncoder(s.out)
				enc.SetIndent("", "  ")
				err = enc.Encode(in)
			} else {
				err = in.print(s.out)
			}
			switch {
			case err != nil:
				return err
			case in.Refused != "":
				return fault.New("E1302", "", "elfhost would not load %q: %s", args[0], in.Refused)
			case len(in.Missing) > 0:
				return fault.New("E1305", "the author adds a [[needs]] with a reason for each", "%q imports %s, which its elf.toml does not name", args[0], join(in.Missing))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func inspect(name string) (inspected, error) {
	var out inspected
	wrap := func(err error) error { return fault.Wrap("E1302", "", fmt.Errorf("inspecting %q: %w", name, err)) }
	found, m, err := look(name)
	if err != nil {
		return out, wrap(err)
	}
	if found != nil {
		wasm, err := found.Package.Wasm()
		if err != nil {
			return out, wrap(err)
		}
		if out.Inspection, err = sandbox.InspectAs(wasm, found.Package.Format); err != nil {
			return out, wrap(err)
		}
		out.Format, out.Manifest, out.Needs = found.Format, found.File, found.Package.Manifest.Needs
		return out, nil
	}
	if st, err := os.Stat(name); err == nil && st.IsDir() {
		name = filepath.Join(name, "plugin.wasm")
	}
	wasm, err := readModule(name)
	if err != nil {
		return out, err
	}
	if out.Inspection, err = sandbox.Inspect(wasm); err != nil {
		return out, wrap(err)
	}
	if m == nil {
		return out, nil
	}
	out.Manifest, out.Needs = filepath.Join(filepath.Dir(name), "elf.toml"), m.Needs
	asked := map[abi.Capability]bool{}
	for _, n := range m.Needs {
		asked[n.Cap] = true
	}
	for _, c := range out.Capabilities {
		if !asked[c] {
			out.Missing = append(out.Missing, c)
		}
	}
	return out, nil
}

// look finds out whether name is a plugin of another format, and reads the
// elf.toml beside it, if there is one.
func look(name string) (*foreign.Found, *abi.Manifest, error) {
	dir, file := name, ""
	if st, err := os.Stat(name); err != nil || !st.IsDir() {
		dir, file = filepath.Split(name)
	}
	dir = filepath.Clean(dir)
	var m *abi.Manifest
	toml := filepath.Join(dir, "elf.toml")
	if st, err := os.Stat(toml); err == nil && !st.Mode().IsRegular() {
		return nil, nil, fault.New("E1302", "", "%q is not a regular file", toml)
	}
	if b, err := os.ReadFile(toml); err == nil {
		if m, err = manifest.Read(b, toml); err != nil {
			return nil, nil, err
		}
	}
	if file != "" && !strings.HasSuffix(file, ".wasm") && !strings.HasSuffix(file, ".json") {
		return nil, m, nil
	}
	found, err := foreign.Find(os.DirFS(dir), file, m)
	var other *ironclaw.Other
	if err != nil && !errors.As(err, &other) && found == nil {
		module := file
		if file == "" {
			module = "plugin.wasm"
		}
		if st, no := os.Stat(filepath.Join(dir, module)); no != nil || st.IsDir() || !strings.HasSuffix(module, ".wasm") {
			return nil, m, err // a manifest is wrong, and there is no module to look at
		}
		return nil, m, nil // inspecting the module says what is wrong
	}
	return found, m, err
}

// could says in words what a capability is at the most.
var could = map[abi.Capability]string{
	abi.NetHTTP: "reach the network by HTTP", abi.Exec: "run programs", abi.Env: "read environment variables",
	abi.Secret: "have secrets filled into its requests", abi.KV: "keep data between calls", abi.Model: "ask the model",
	abi.ToolCall: "call other tools",
}

func (in inspected) print(w io.Writer) error {
	if in.Format != "" {
		fmt.Fprintf(w, "format   %s (from %s)\n", in.Format, term.Line(in.Manifest))
	}
	fmt.Fprintf(w, "digest   sha256:%s\nsize     %s\n", in.Digest, bytesText(int64(in.Size)))
	at := "at most  "
	for _, c := range in.Capabilities {
		fmt.Fprintf(w, "%s%-10s %s, where a person grants it\n", at, c, could[c])
		at = "         "
	}
	if in.Files {
		fmt.Fprintf(w, "%sfiles      it imports WASI's file functions: nothing is there unless fs.read or fs.write is granted\n", at)
		at = "         "
	}
	if at == "at most  " {
		fmt.Fprintf(w, "%scompute: it imports no capability\n", at)
	}
	label := "asks     "
	for _, n := range in.Needs {
		for line := range strings.Lines(policy.Grant{Cap: n.Cap, Scope: n.Scope}.String()) {
			fmt.Fprintf(w, "%s%s  %s\n", label, term.Line(strings.TrimSuffix(line, "\n")), term.Line(n.Reason))
			label = "         "
		}
	}
	fmt.Fprintf(w, "exports  %s\n", term.Line(short(strings.Join(in.Exports, " "), 160)))
	for i, u := range in.Limits {
		label := "limits   "
		if i > 0 {
			label = "         "
		}
		fmt.Fprintf(w, "%s%-42s %9d of %d\n", label, u.Name, u.Used, u.Max)
	}
	verdict := "elfhost would load it"
	if in.Refused != "" {
		verdict = "refused: " + term.Line(in.Refused)
	}
	_, err := fmt.Fprintf(w, "verdict  %s\n", verdict)
	return err
}

func join(cs []abi.Capability) string {
	var out []string
	for _, c := range cs {
		out = append(out, string(c))
	}
	return strings.Join(out, ", ")
}
