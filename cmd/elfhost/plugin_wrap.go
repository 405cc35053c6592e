package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/host/foreign"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/kit"
	"github.com/elfhost/elfhost/internal/term"
)

func pluginWrap(s streams) *cobra.Command {
	var p kit.Program
	var files []string
	var noInput bool
	c := &cobra.Command{
		Use: "wrap FILE", Short: "Make a tool of a WASI program: write its elf.toml", Args: exactly(1, "one file"),
		Long: `Write an elf.toml beside a WASI program, which says how parameters become its
arguments, standard input and files. Standard output is the result, an exit code
other than 0 an error. At a terminal, what no flag says is asked.

{name} is a parameter, {name...} one argument for each item of a list, {?name} a
switch. Words of one --arg belong together and are left out when a parameter of
theirs is absent: --arg '--width {width}'.`,
		Example: `  elfhost plugin wrap wc.wasm --arg -l --arg '{files...}' --read '/ws/**'
  elfhost plugin wrap fmt.wasm --description 'Formats text.' --arg '--width {width}' --stdin '{text}'`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := splitFiles(&p, files); err != nil {
				return err
			}
			said := c.Flags().Changed
			if !noInput && term.IsTerminal(s.in) {
				asker{bufio.NewReader(s.in), s.err}.fill(&p, args[0], said)
			}
			return wrapProgram(s, p, args[0], said("arg") || said("stdin") || len(p.Args) > 0 || p.Stdin != "")
		},
	}
	fl := c.Flags()
	fl.StringVar(&p.Name, "name", "", "the plugin's name; the file's otherwise")
	fl.StringVar(&p.Tool, "tool", "", "the tool's name; the plugin's otherwise")
	fl.StringVar(&p.Description, "description", "", "what it does, for the model")
	fl.StringArrayVar(&p.Args, "arg", nil, "an argument, or several that belong together")
	fl.StringVar(&p.Stdin, "stdin", "", "what it reads as standard input: '{text}'")
	fl.StringArrayVar(&files, "file", nil, "a file that it finds: /in/data.csv={data}")
	fl.StringArrayVar(&p.Read, "read", nil, "files that it reads: '/ws/**'")
	fl.StringArrayVar(&p.Write, "write", nil, "files that it writes: '/ws/out/**'")
	fl.BoolVar(&noInput, "no-input", false, "ask nothing")
	return c
}

func splitFiles(p *kit.Program, files []string) error {
	for _, f := range files {
		path, text, ok := strings.Cut(f, "=")
		if !ok || !strings.HasPrefix(path, "/") {
			return fault.New("E1001", "for example --file '/in/data.csv={data}'", "--file %q is not PATH=TEXT with a path from /", f)
		}
		if p.Files == nil {
			p.Files = map[string]string{}
		}
		p.Files[path] = text
	}
	return nil
}

func wrapProgram(s streams, p kit.Program, file string, mapped bool) error {
	wasm, err := readModule(file)
	if err != nil {
		return err
	}
	if p.Name == "" {
		p.Name = foreign.PluginName(file)
	}
	if p.Description == "" {
		p.Description = "Run the program " + p.Name + ". Its result is what it writes to standard output."
	}
	if !mapped {
		p.Args, p.Stdin = []string{"{args...}"}, ""
	}
	text, err := kit.Wrap(wasm, p)
	if err != nil {
		return fault.Wrap("E1302", "`elfhost plugin inspect` says what a module is", fmt.Errorf("wrapping %q: %w", file, err))
	}
	out := filepath.Join(filepath.Dir(file), "elf.toml")
	f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fault.New("E1001", "move the program into a folder of its own, or remove the file", "writing the manifest: %w", err)
	}
	_, err = io.WriteString(f, text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fault.Wrap("E1501", "", err)
	}
	fmt.Fprintln(s.out, out)
	fmt.Fprintf(s.err, "elfhost: next: elfhost tools --plugin %s\n", filepath.Dir(file))
	return nil
}

// asker asks for what no flag said. An empty answer leaves it open.
type asker struct {
	in  *bufio.Reader
	out io.Writer
}

func (a asker) ask(question string) string {
	fmt.Fprint(a.out, question+" ")
	line, err := a.in.ReadString('\n')
	if err != nil {
		fmt.Fprintln(a.out)
	}
	return strings.TrimSpace(line)
}

func (a asker) fill(p *kit.Program, file string, said func(string) bool) {
	if !said("name") {
		p.Name = a.ask(fmt.Sprintf("name of the plugin [%s]:", foreign.PluginName(file)))
	}
	if !said("description") {
		p.Description = a.ask("what it does, in a sentence for the model:")
	}
	if !said("arg") {
		fmt.Fprintln(a.out, "arguments, one a line, as {name}, {name...}, {?name} or text; an empty line ends:")
		for text := a.ask("  >"); text != ""; text = a.ask("  >") {
			p.Args = append(p.Args, text)
		}
	}
	if !said("stdin") {
		p.Stdin = a.ask("standard input, for example {text}; empty for none:")
	}
	if !said("read") {
		p.Read = strings.Fields(a.ask("files that it reads, for example /ws/**; empty for none:"))
	}
	if !said("write") {
		p.Write = strings.Fields(a.ask("files that it writes, for example /ws/out/**; empty for none:"))
	}
}
