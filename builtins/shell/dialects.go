package shell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
)

type bashArgs struct {
	Command    string  `json:"command"`
	Timeout    float64 `json:"timeout"` // seconds
	Background bool    `json:"background"`
}

func (s *Shell) bash(ctx context.Context, c host.Call) (abi.Result, error) {
	a, err := tool.Args[bashArgs](c)
	if err != nil {
		return abi.Result{}, err
	}
	r := request{command: a.Command, dir: s.Dir(), timeout: s.Timeout, output: outputLimit, background: a.Background, follow: !a.Background}
	if a.Timeout > 0 {
		r.timeout = min(seconds(a.Timeout), max(10*time.Minute, s.Timeout))
	}
	if _, err := s.Tree.Stat(ctx, c.Rights, r.dir); errors.Is(err, fs.ErrNotExist) {
		return s.lostFolder(r.dir), nil
	}
	return s.execute(ctx, c, r)
}

// lostFolder goes back to the workspace when the working folder is gone.
func (s *Shell) lostFolder(dir string) abi.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cwd = "/" + strings.Split(dir, "/")[1]
	return abi.Errorf("The working directory %s is gone. The next command runs in the workspace.", s.Tree.Display("", dir))
}

type shellArgs struct {
	Command    string            `json:"command"`
	Args       []string          `json:"args"`
	Cwd        string            `json:"cwd"`
	Env        map[string]string `json:"env"`
	Output     int               `json:"outputByteLimit"`
	Timeout    float64           `json:"timeoutSeconds"`
	Background bool              `json:"background"`
}

func (s *Shell) shell(ctx context.Context, c host.Call) (abi.Result, error) {
	a, err := tool.Args[shellArgs](c)
	if err != nil {
		return abi.Result{}, err
	}
	r := request{command: commandLine(a.Command, a.Args), timeout: seconds(a.Timeout), output: outputLimit, background: a.Background}
	if a.Output > 0 {
		r.output = min(a.Output, mostOutput)
	}
	for k, v := range a.Env {
		if !variable.MatchString(k) || strings.ContainsRune(v, 0) {
			return abi.Errorf("%q is no name for a variable: letters, digits and underscores, not a digit first.", k), nil
		}
		r.env = append(r.env, k+"="+v)
	}
	slices.Sort(r.env)
	if r.dir, err = s.Tree.Virtual("", a.Cwd); err != nil {
		return abi.Errorf("cwd %s is outside the workspace.", a.Cwd), nil
	}
	if info, err := s.Tree.Stat(ctx, c.Rights, r.dir); err != nil || !info.IsDir() {
		if errors.Is(err, abi.ErrDenied) {
			return abi.Result{}, err
		}
		return abi.Errorf("cwd %s is not a folder.", a.Cwd), nil
	}
	return s.execute(ctx, c, r)
}

// commandLine puts arguments behind a command, each as one word whatever is in it.
func commandLine(command string, args []string) string {
	for _, a := range args {
		command += " '" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return command
}

func seconds(s float64) time.Duration {
	return time.Duration(min(max(s, 0), 1e6) * float64(time.Second))
}

type jobArgs struct {
	ID   string `json:"id"`
	Kill bool   `json:"kill"`
	All  bool   `json:"all"`
}

// job shows, lists or ends background jobs.
func (s *Shell) job(ctx context.Context, c host.Call) (abi.Result, error) {
	a, err := tool.Args[jobArgs](c)
	if err != nil {
		return abi.Result{}, err
	}
	if a.ID == "" {
		return s.listJobs(), nil
	}
	s.mu.Lock()
	j := s.jobs[a.ID]
	s.mu.Unlock()
	if j == nil {
		return abi.Errorf("There is no job %q. %s", a.ID, s.listJobs().Text()), nil
	}
	if a.Kill {
		j.Kill()
		select {
		case <-j.Done():
		case <-ctx.Done():
			return abi.Result{}, ctx.Err()
		}
	}
	return j.report(a.All), nil
}

func (s *Shell) listJobs() abi.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.jobs) == 0 {
		return abi.Text("No job runs in the background.")
	}
	var ids []string
	for id := range s.jobs {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return s.jobs[a].n - s.jobs[b].n })
	var b strings.Builder
	for _, id := range ids {
		fmt.Fprintf(&b, "%s (%s): %s\n", id, s.jobs[id].status(), firstLine(s.jobs[id].command))
	}
	return abi.Text(strings.TrimSuffix(b.String(), "\n"))
}

func firstLine(s string) string {
	line, _, more := strings.Cut(s, "\n")
	if len(line) > 100 {
		line, more = strings.ToValidUTF8(line[:100], ""), true
	}
	if more {
		line += " …"
	}
	return line
}
