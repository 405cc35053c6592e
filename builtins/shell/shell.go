// Package shell has the tools that run commands: Bash, and the same under the
// name and parameters of ACP clients, Shell. Commands run through
// reach.Runner, in its kernel sandbox where there is one. Whether a command may
// run is for the Gate to say; what is refused here is what no answer allows.
package shell

import (
	"context"
	"embed"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

//go:embed tools/*.md tools/*.json
var texts embed.FS

// The limits of commands.
const (
	DefaultTimeout = 2 * time.Minute // of Bash; Shell has none of its own
	outputLimit    = 100 << 10       // bytes of output that are kept, head and tail
	mostOutput     = 10 << 20        // that may be asked for
	mostJobs       = 16              // in the background at once
)

// Options say where commands run and how they are bounded.
type Options struct {
	Tree   *reach.Tree
	Runner *reach.Runner
	// ACP selects Shell in place of Bash.
	ACP bool
	// Timeout is exec_timeout, for Bash. 0: DefaultTimeout.
	Timeout time.Duration
	// Ceiling is the longest that any command may take, background ones aside.
	// 0: no limit.
	Ceiling time.Duration
	// Logs is a folder of the host for the whole output of commands. It has to
	// exist. "": what is cut is lost, and nothing can run in the background.
	Logs string
	// Read are folders of the host that commands may read inside the sandbox,
	// beside the workspace and the system's own.
	Read []string
	// Network lets commands reach the network.
	Network bool
	// Sandboxed refuses to run anything where no kernel sandbox works.
	Sandboxed bool
}

// Shell holds what lasts from call to call: the working folder of Bash, and
// background jobs. It is safe for concurrent use. Close it: that ends the jobs.
type Shell struct {
	Options
	program string // of the shell
	root    string // host path of the workspace

	mu   sync.Mutex
	cwd  string // virtual
	jobs map[string]*job
	next int // of logs

	started int // jobs
}

// Program is the name of the shell that runs commands. An exec grant for it,
// such as "bash **", is what a session needs for these tools.
func Program() string {
	names := []string{"bash", "sh"}
	if runtime.GOOS == "windows" {
		names = []string{"bash", "cmd"}
	}
	for _, n := range names {
		if runtime.GOOS == "windows" {
			n += ".exe"
		}
		for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
			if info, err := os.Stat(filepath.Join(dir, n)); err == nil && info.Mode().IsRegular() {
				return strings.TrimSuffix(n, ".exe")
			}
		}
	}
	return names[1]
}

// Grant is the right that a session gives these tools: to start the shell.
// Which commands may run is the Gate's to say.
func Grant() policy.Grant {
	return policy.Grant{Cap: abi.Exec, Scope: []string{Program() + " **"}}
}

// New makes the shell of one session.
func New(o Options) (*Shell, error) {
	root, err := o.Tree.Host(policy.Workspace)
	if err != nil {
		return nil, err
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	return &Shell{Options: o, program: Program(), root: root, cwd: policy.Workspace, jobs: make(map[string]*job)}, nil
}

// Tools are Bash and BashJob, or Shell and ShellJob.
func (s *Shell) Tools() []host.Tool {
	run, name, watch := s.bash, "Bash", "BashJob"
	if s.ACP {
		run, name, watch = s.shell, "Shell", "ShellJob"
	}
	spec := tool.Spec(texts, name, host.KindExecute)
	spec.MaxOutput = -1 // bounded here, with head and tail
	if s.Runner.Sandbox.Kind == "" && s.Runner.Terminal == nil {
		spec.Description += "\n\nNo kernel sandbox is in force on this machine: every command runs with all the rights of the person."
	}
	if s.Runner.Terminal != nil {
		spec.Description += "\n\nCommands run in the person's editor, in its environment and with its network. Of a long output the tail is kept."
	}
	jobs := tool.Spec(texts, "BashJob", host.KindOther)
	jobs.Name, jobs.MaxOutput = watch, -1
	return []host.Tool{
		&tool.Func{S: spec, Run: run},
		&tool.Func{S: jobs, Run: s.job},
	}
}

// Close ends every background job and waits for them.
func (s *Shell) Close() error {
	s.mu.Lock()
	jobs := s.jobs
	s.jobs = make(map[string]*job)
	s.mu.Unlock()
	for _, j := range jobs {
		j.Kill()
	}
	for _, j := range jobs {
		<-j.Done()
	}
	return nil
}

// Dir is the folder in which Bash runs its next command, as a virtual path.
func (s *Shell) Dir() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cwd
}

// refuse says why nothing runs, or nil.
func (s *Shell) refuse(command string) *abi.Result {
	if s.Sandboxed && s.Runner.Sandbox.Kind == "" {
		res := abi.Errorf("Commands are off: the policy requires a kernel sandbox, and none works on this machine. `elfhost doctor` says why.")
		return &res
	}
	if c, err := policy.ParseCommand(command); err == nil && c.Critical != "" {
		res := abi.Errorf("The command was refused: %s. No answer and no rule allows it.", c.Critical)
		return &res
	}
	return nil
}

// request is a command of either dialect.
type request struct {
	command    string
	dir        string // virtual
	env        []string
	timeout    time.Duration
	output     int
	background bool
	follow     bool // the folder it ends in is where the next one begins
}

// programFor makes what the runner takes.
func (s *Shell) programFor(r request, marker string) (reach.Program, error) {
	dir, err := s.Tree.Host(r.dir)
	if err != nil {
		return reach.Program{}, err
	}
	p := reach.Program{
		Argv:    []string{s.program, "-c", s.script(r, marker)},
		Dir:     dir,
		Env:     append(environment(), r.env...),
		Use:     policy.Use{Cap: abi.Exec, Target: s.program + "\x00-c\x00" + r.command},
		Timeout: r.timeout,
		Output:  r.output,
		Write:   []string{s.root},
		Read:    s.Read,
		Network: s.Network,
	}
	if s.program == "cmd" {
		p.Argv = []string{"cmd", "/d", "/c", r.command}
	}
	return p, nil
}

// execute runs a command to its end.
func (s *Shell) execute(ctx context.Context, c host.Call, r request) (abi.Result, error) {
	if res := s.refuse(r.command); res != nil {
		return *res, nil
	}
	if r.background {
		return s.begin(ctx, c, r)
	}
	if s.Ceiling > 0 && (r.timeout == 0 || r.timeout > s.Ceiling) {
		r.timeout = s.Ceiling
	}
	marker := ""
	if s.program != "cmd" && (r.follow || s.Runner.Terminal == nil) { // a person watches a terminal
		marker = newMarker()
	}
	p, err := s.programFor(r, marker)
	if err != nil {
		return abi.Result{}, err
	}
	log := s.logFile(c.ID)
	p.Log, p.Call = log, c.ID
	if marker != "" {
		p.Output += 4096 // the marker, a status and a path
	}
	exit, err := s.Runner.Run(ctx, c.Rights, p)
	if err != nil && ctx.Err() == nil {
		removeLog(log)
		return abi.Result{}, err
	}
	if exit.Sandbox == reach.InTerminal {
		log = "" // it keeps none
	}
	o := newOutcome(exit, r)
	if marker != "" {
		said := o.cut(marker, log)
		o.shrink(r.output)
		o.exit = signalled(o.exit, said)
		if r.follow {
			s.follow(&o, said.dir)
		}
	}
	o.keepLog(log)
	if err := ctx.Err(); err != nil {
		return abi.Result{}, err
	}
	return o.result(), nil
}
