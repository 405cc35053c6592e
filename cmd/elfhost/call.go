package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/files"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/config/strict"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

// sessionFlags are what every verb that opens a session takes.
type sessionFlags struct {
	dir, mode, dialect string
	tools, allow       []string
	plugins            []string
	noInput            bool
}

func (f *sessionFlags) register(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVarP(&f.dir, "dir", "C", "", "work in this folder")
	fl.StringVar(&f.mode, "mode", "", "plan, ask, acceptEdits or auto")
	fl.StringVar(&f.dialect, "dialect", "", "names and parameters of tools: tinyelf or acp")
	fl.StringSliceVar(&f.tools, "tools", nil, "offer these tools only")
	fl.StringArrayVar(&f.allow, "allow", nil, "allow a rule or a plugin's grant for this run: 'Bash(git status:*)', 'webfetch net.http https://x.example GET'")
	fl.StringArrayVar(&f.plugins, "plugin", nil, "load the plugin in this folder (elf.toml, plugin.wasm) for this run")
	fl.BoolVar(&f.noInput, "no-input", false, "never ask: a question is a denial")
}

// session opens an App for the flags.
func (f *sessionFlags) session(ctx context.Context, s streams, o app.Options) (*app.App, error) {
	if f.dialect != "" && f.dialect != "tinyelf" && f.dialect != "acp" {
		return nil, fault.New("E1001", "", "--dialect is tinyelf or acp, not %q", f.dialect)
	}
	o.Dir, o.Mode, o.Dialect, o.Tools, o.Allow, o.Plugins = f.dir, host.Mode(f.mode), f.dialect, f.tools, f.allow, f.plugins
	o.Offline = s.offline != nil && *s.offline
	if f.noInput {
		o.Approver = nil
	} else if o.Approver == nil && term.IsTerminal(s.in) {
		o.Approver = &term.Prompt{In: s.in, Out: s.err, Style: term.StyleOf(s.err, os.Getenv)}
	}
	if term.IsTerminal(fileOf(s.err)) {
		o.Terminal = s.err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	o.Compiler, o.Keeper = self, s.keeper
	a, err := app.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	for _, n := range a.TakeNotes() {
		fmt.Fprintf(s.err, "elfhost: note: %s\n", term.Lines(n))
	}
	return a, nil
}

// watch collects the refusals of a run.
type watch struct {
	mu  sync.Mutex
	all []host.Denied
}

func (w *watch) add(d host.Denied) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, d)
}

func (w *watch) refusals() []host.Denied {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

func (w *watch) denials() []denial {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := []denial{}
	for _, d := range w.all {
		if n := denialOf(d); !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// fault is the error for what was refused, with the hint that helps most.
func (w *watch) fault(text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.all) == 0 {
		return nil
	}
	d := w.all[len(w.all)-1]
	code, hint := "E1203", ""
	if d.Allow != "" {
		hint = "a person can allow it with: " + d.Allow
	}
	switch {
	case d.Layer == "nobody":
		code = "E1201"
	case d.Layer == "person":
		code = "E1202"
	case d.Final && d.Where != "":
		code, hint = "E1204", "see "+d.Where
	case d.Layer == "mode":
		code, hint = "E1204", "the session's mode forbids it; --mode chooses another"
	case d.Final && d.Allow == "":
		code, hint = "E1204", d.Layer+" forbids it, and no grant changes that"
	}
	return fault.New(code, hint, "%s", text)
}

// blocked is the error of a run in which a question met nobody: the task went
// on without what it needed. Other refusals are answers that the agent works with.
func (w *watch) blocked() error {
	w.mu.Lock()
	i := slices.IndexFunc(w.all, func(d host.Denied) bool { return d.Layer == "nobody" })
	w.mu.Unlock()
	if i < 0 {
		return nil
	}
	w.all = w.all[:i+1]
	return w.fault("a call of " + w.all[i].Call.Tool + " needed a person's consent, and nobody was there to give it")
}

type callFlags struct {
	sessionFlags
	receipt, asJSON bool
	session, record string
	refused         func([]host.Denied)   // told what was refused; nil: nobody
	logged          func(sandbox.LogLine) // given what plugins log; nil: nobody
}

func callVerb(s streams) *cobra.Command {
	var f callFlags
	c := &cobra.Command{
		Use: "call TOOL [JSON]", Short: "Call one tool through the one door",
		Long: "Call one tool with a JSON object of arguments, through the same gate as an agent's calls.\nThe result goes to standard output. JSON may be - to read it from standard input.",
		Example: `  elfhost call Read '{"path": "README.md", "limit": 3}'
  elfhost call Bash '{"command": "git status"}' --allow 'Bash(git status:*)'
  elfhost call WebFetch '{"url": "https://go.dev"}' --receipt`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), s, args) },
	}
	f.register(c)
	c.Flags().BoolVar(&f.receipt, "receipt", false, "print the receipt of a sandboxed call to standard error")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print the whole result as JSON")
	c.Flags().StringVar(&f.record, "record", "", "keep in this file all that the plugin's module was told, for elfhost replay; it holds what the module read")
	c.Flags().StringVar(&f.session, "session", "", "keep what this call leaves (files read) under a name, for the next call")
	return c
}

func (f *callFlags) run(ctx context.Context, s streams, args []string) error {
	input, err := callArgs(s, args)
	if err != nil {
		return err
	}
	paths, err := config.FindPaths(os.Getenv)
	if err != nil {
		return fault.Wrap("E1002", "", err)
	}
	state, err := openCallState(paths, f.session)
	if err != nil {
		return err
	}
	var w watch
	a, err := f.sessionFlags.session(ctx, s, app.Options{Session: state.name, Files: &state.files, Paths: &paths, Logged: f.logged})
	if err != nil {
		return err
	}
	defer a.Close(context.WithoutCancel(ctx))
	var rec sandbox.Recording
	within := ctx
	if f.record != "" {
		within = sandbox.Record(ctx, &rec)
	}
	if err := a.MCP.Await(ctx, args[0]); err != nil {
		return fault.Wrap("E1310", "`elfhost mcp test` says more", err)
	}
	res := a.Registry.Invoke(within, f.call(s, a, args[0], input, &w))
	if err := errors.Join(state.save(), f.print(s, res)); err != nil {
		return err
	}
	if f.refused != nil {
		f.refused(w.refusals())
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if f.record != "" && (rec.Digest != "" || !res.IsError) {
		if err := keepRecording(f.record, &rec); err != nil {
			return err
		}
	}
	if !res.IsError {
		return nil
	}
	if err := w.fault(args[0] + " was refused"); err != nil {
		return err
	}
	if !a.Registry.Has(args[0]) {
		return fault.New("E1301", "`elfhost tools` lists them", "there is no tool %q", args[0])
	}
	if a.Registry.Fits(args[0], input) != nil {
		return fault.New("E1003", "`elfhost tools "+args[0]+"` shows what it takes, with an example", "%s cannot be called so", args[0])
	}
	return fault.New("E1303", "", "%s answered with an error", args[0])
}

func (f *callFlags) call(s streams, a *app.App, tool string, input json.RawMessage, w *watch) host.Call {
	c := host.Call{
		ID: "call-1", Tool: tool, Args: input, Caller: host.Caller{Session: a.Session, Person: true}, Denied: w.add,
		Progress: func(p abi.Progress) {
			if p.Message != "" {
				fmt.Fprintf(s.err, "elfhost: %s\n", term.Line(p.Message))
			}
		},
	}
	c.Receipt = func(r abi.Receipt) {
		a.KeepReceipt(r)
		if f.receipt {
			fmt.Fprintln(s.err, "elfhost: "+receiptLine(r))
		}
	}
	return c
}

// print writes a result. Errors of a tool go to standard error, so that
// standard output holds an answer or nothing.
func (f *callFlags) print(s streams, res abi.Result) error {
	if f.asJSON {
		return json.NewEncoder(s.out).Encode(res)
	}
	w := s.out
	if res.IsError {
		w = s.err
	}
	for _, c := range res.Content {
		text := c.Text
		switch c.Type {
		case abi.TypeText:
		case abi.TypeImage, abi.TypeAudio:
			text = fmt.Sprintf("[%s, %s, %s; --json prints it]", c.Type, term.Line(c.MIMEType), bytesText(int64(len(c.Data))))
		default:
			text = fmt.Sprintf("[%s %s]", c.Type, term.Line(c.URI))
		}
		if term.IsTerminal(fileOf(w)) {
			text = term.Lines(text)
		}
		if !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}

func fileOf(w io.Writer) *os.File {
	f, _ := w.(*os.File)
	return f
}

// maxStdin bounds what is read from standard input, in bytes.
const maxStdin = 16 << 20

func callArgs(s streams, args []string) (json.RawMessage, error) {
	switch {
	case len(args) < 2:
		return nil, nil
	case args[1] != "-":
		return json.RawMessage(args[1]), nil
	}
	b, err := io.ReadAll(io.LimitReader(s.in, maxStdin+1))
	if err != nil {
		return nil, fault.New("E1003", "", "reading the arguments from standard input: %w", err)
	}
	if len(b) > maxStdin {
		return nil, fault.New("E1003", "", "the arguments on standard input are over %d bytes", maxStdin)
	}
	return b, nil
}

// callState is what a named session of `elfhost call` keeps between calls.
type callState struct {
	name, path string
	files      files.Memory
}

func openCallState(p config.Paths, name string) (*callState, error) {
	st := &callState{}
	if name == "" {
		return st, nil
	}
	if err := checkSessionName(name); err != nil {
		return nil, err
	}
	st.name = "call-" + name
	st.path = filepath.Join(p.State, "sessions", st.name, "call.json")
	b, err := os.ReadFile(st.path)
	if os.IsNotExist(err) {
		return st, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &st.files)
	}
	if err != nil {
		return nil, fault.New("E1501", "delete the file to start afresh", "the state of session %q: %w", name, err)
	}
	return st, nil
}

func checkSessionName(name string) error {
	ok := len(name) <= 64
	for i := 0; i < len(name); i++ {
		c := name[i]
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_')
	}
	if !ok {
		return fault.New("E1001", "a name has up to 64 letters, digits, - and _", "--session %q is not a name", name)
	}
	return nil
}

func (st *callState) save() error {
	if st.path == "" {
		return nil
	}
	b, err := json.Marshal(&st.files)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(st.path), 0o700)
	}
	if err == nil {
		err = strict.WriteFile(st.path, b) // another call of the session may end at the same time
	}
	if err != nil {
		return fault.New("E1501", "`elfhost doctor` checks the folders", "keeping the session's state: %w", err)
	}
	return nil
}
