package sandbox_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/sandbox"
)

// confined is a probe whose programs run under the kernel sandbox.
func confined(t *testing.T, limits abi.Limits, argv ...string) *probe {
	t.Helper()
	s := reach.ProbeSandbox(t.Context())
	if s.Kind == "" {
		t.Skipf("no kernel sandbox works here: %+v", s.Tried)
	}
	p := newProbe(t, abi.Manifest{Limits: limits, Needs: append(needs[:2:2], abi.Need{Cap: abi.Exec, Scope: argv},
		abi.Need{Cap: abi.KV, Scope: []string{"1MiB"}}, abi.Need{Cap: abi.NetHTTP, Scope: []string{"public"}},
		abi.Need{Cap: abi.Model, Scope: []string{"1k tokens"}}, abi.Need{Cap: abi.Env, Scope: []string{"LANG"}},
		abi.Need{Cap: abi.Secret, Scope: []string{"token@a.example"}}, abi.Need{Cap: abi.ToolCall, Scope: []string{"Read"}})})
	p.loader.Runner = &reach.Runner{Sandbox: s}
	return p
}

// One program, an argv that a pattern holds, under the kernel: what the plugin
// may not reach, its program does not either.
func TestSH17ExecThroughTheABI(t *testing.T) {
	p := confined(t, abi.Limits{}, "cat -- *", "touch *", "env", "git log -- *")
	canary(t, p)
	p.file("a.txt", "inside")
	cat := "exec cat -- *"
	p.want(args{Do: "exec", List: []string{"cat", "--", "a.txt"}}, "inside", cat)
	if full, err := exec.LookPath("cat"); err == nil {
		p.want(args{Do: "exec", List: []string{"cat", "--", "a.txt"}}, "inside", "exec "+full+" -- *")
	}
	for _, argv := range [][]string{{"cat", "--", "--help"}, {"cat", "-n", "a.txt"}, {"cat"}, {"./cat", "--", "a.txt"}, {filepath.Join(p.dir, "cat"), "--", "a.txt"},
		{"sh", "-c", "cat a.txt"}, {"git", "log", "--", "--output=PWN"}, {""}, {"cat\x00", "--", "a.txt"}} {
		if got := p.get(args{Do: "exec", List: argv}, cat, "exec git log -- *"); !strings.HasPrefix(got, "ERROR") {
			t.Errorf("%q ran: %q", argv, got)
		}
	}
	p.refused(args{Do: "exec", List: []string{"cat", "--", "a.txt"}}, "denied")
	if got := p.secretless(args{Do: "exec", List: []string{"cat", "--", "../canary"}}, cat); strings.Contains(got, "CANARY") {
		t.Error("a program read what lies outside")
	}
	// Without a right to write, nothing of the workspace changes.
	p.get(args{Do: "exec", List: []string{"touch", "made"}}, "exec touch *")
	if _, err := os.Stat(filepath.Join(p.dir, "made")); err == nil {
		t.Error("a program wrote without fs.write")
	}
	p.get(args{Do: "exec", List: []string{"touch", "made"}}, "exec touch *", readWS, writeWS)
	if _, err := os.Stat(filepath.Join(p.dir, "made")); err != nil {
		t.Error("a program could not write with fs.write:", err)
	}
	t.Setenv("ELF_TEST_TOKEN", "hunter2")
	if got := p.get(args{Do: "exec", List: []string{"env"}}, "exec env"); strings.Contains(got, "hunter2") || !strings.Contains(got, "PATH=") {
		t.Errorf("the environment: %q", got)
	}
}

// A model or a program that never answers keeps a call no longer than its time.
func TestABI07BlockingModelAndExec(t *testing.T) {
	const limit = 400 * time.Millisecond
	p := confined(t, abi.Limits{Time: limit}, "sleep *")
	asked := make(chan struct{}, 1)
	p.loader.Model = func(ctx context.Context, _ policy.Rights, _ sandbox.ModelRequest) (sandbox.ModelReply, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return sandbox.ModelReply{}, ctx.Err()
	}
	p.alive()
	reached := map[string]func() bool{
		"model": func() bool { return len(asked) == 1 },
		"exec":  func() bool { return p.last.HostCalls["elf:exec.run"] == 1 },
	}
	for _, a := range []args{{Do: "model", A: "hi"}, {Do: "exec", List: []string{"sleep", "3600"}}} {
		// On a busy machine a call may be over before it came so far.
		for try := 0; try == 0 || try < 50 && !reached[a.Do](); try++ {
			start := time.Now()
			_, err := p.try(a, "model 1k tokens", "exec sleep *")
			if !errors.Is(err, abi.ErrDeadline) || time.Since(start) < limit {
				t.Errorf("%s: %v after %v", a.Do, err, time.Since(start))
			}
			p.alive()
		}
	}
	if len(asked) != 1 {
		t.Error("the model was not asked: the test is blind")
	}
}
