package shell

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == reach.SandboxVerb {
		os.Exit(reach.SandboxMain(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// session is a workspace with both dialects' tools over it.
type session struct {
	t     testing.TB
	dir   string
	logs  string
	shell *Shell
	tools map[string]host.Tool
}

func newSession(t testing.TB, runner *reach.Runner) *session {
	t.Helper()
	if Program() != "bash" {
		t.Skip("no bash here")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &session{t: t, dir: filepath.Join(top, "ws"), logs: filepath.Join(top, "logs"), tools: make(map[string]host.Tool)}
	for _, d := range []string{s.dir, s.logs} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := reach.NewTree(reach.Mount{Name: "/ws", Dir: s.dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	for _, acp := range []bool{true, false} {
		sh, err := New(Options{Tree: tree, Runner: runner, ACP: acp, Logs: s.logs})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { sh.Close() })
		for _, tool := range sh.Tools() {
			s.tools[tool.Spec().Name] = tool
		}
		s.shell = sh
	}
	return s
}

func sandboxed(t testing.TB) *reach.Runner {
	t.Helper()
	box := reach.ProbeSandbox(t.Context())
	if box.Kind == "" {
		t.Skip("no kernel sandbox works here")
	}
	return &reach.Runner{Sandbox: box}
}

func (s *session) callCtx(ctx context.Context, name string, a map[string]any) (abi.Result, error) {
	s.t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		s.t.Fatal(err)
	}
	g, err := policy.New("test", Grant(), policy.Grant{Cap: abi.FSRead, Scope: []string{"/ws/**"}})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.tools[name].Call(ctx, host.Call{ID: "c1", Tool: name, Args: raw, Rights: policy.Rights{Grants: g}})
}

func (s *session) call(name string, a map[string]any) abi.Result {
	s.t.Helper()
	res, err := s.callCtx(s.t.Context(), name, a)
	if err != nil {
		return abi.Errorf("%s", err)
	}
	return res
}

func (s *session) bash(command string) string {
	s.t.Helper()
	return s.call("Bash", map[string]any{"command": command}).Text()
}

func (s *session) exists(name string) bool {
	_, err := os.Stat(filepath.Join(s.dir, name))
	return err == nil
}

func wants(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("answer lacks %q:\n%s", w, text[max(0, len(text)-800):])
		}
	}
}

// quick runs what must not wait for a command that takes 300 s, or for ever.
func quick(t testing.TB, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took > 2*time.Minute {
		t.Errorf("took %v", took)
	}
}

func TestBashAnswers(t *testing.T) {
	s := newSession(t, &reach.Runner{})
	for command, want := range map[string]string{
		"echo hi":                      "hi",
		"true":                         "The command succeeded without output.",
		"echo no >&2; exit 3":          "no\n\nExit code 3.",
		"kill -9 $$":                   "The command was ended by SIGKILL.",
		"printf 'a\\nb'":               "a\nb",
		"# only a comment":             "The command succeeded without output.",
		"cat <<X\nhere\nX":             "here",
		"f() { return 4; }; f":         "Exit code 4.",
		"printf 'caf\\351 hi'":         "caf\uFFFD hi",
		"echo x; trap 'echo bye' EXIT": "x\nbye",
	} {
		if got := s.bash(command); got != want {
			t.Errorf("%q gives %q, want %q", command, got, want)
		}
	}
}

func TestStructuredAnswer(t *testing.T) {
	s := newSession(t, &reach.Runner{})
	var got structured
	res := s.call("Shell", map[string]any{"command": "printf", "args": []string{"%s|", "a b", "$HOME", "it's", "; touch PWN"}})
	if err := json.Unmarshal(res.Structured, &got); err != nil {
		t.Fatal(err)
	}
	if got.Output != "a b|$HOME|it's|; touch PWN|" || got.Truncated || got.TimedOut || got.ExitStatus.Signal != nil || *got.ExitStatus.ExitCode != 0 {
		t.Errorf("got %s", res.Structured)
	}
	if s.exists("PWN") {
		t.Error("an argument was run")
	}
	res = s.call("Shell", map[string]any{"command": "sleep 300", "timeoutSeconds": 0.3})
	wants(t, string(res.Structured), `"timedOut":true`, `"exitCode":null`)
	res = s.call("Shell", map[string]any{"command": "seq 100000", "outputByteLimit": 1000})
	wants(t, string(res.Structured), `"truncated":true`)
	if n := len(res.Text()); n > 1300 {
		t.Errorf("answer has %d bytes", n)
	}
	wants(t, res.Text(), "1\n2\n", "99999\n100000", "left out (truncated)", "The whole output")
}

func TestShellEnvAndCwd(t *testing.T) {
	s := newSession(t, &reach.Runner{})
	os.Mkdir(filepath.Join(s.dir, "sub"), 0o755)
	res := s.call("Shell", map[string]any{"command": "pwd; echo $CI", "cwd": "sub", "env": map[string]string{"CI": "yes; no"}})
	if got, want := res.Text(), filepath.Join(s.dir, "sub")+"\nyes; no"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	wants(t, s.call("Shell", map[string]any{"command": "pwd", "cwd": ".."}).Text(), "cwd")
	wants(t, s.call("Shell", map[string]any{"command": "pwd", "cwd": "nope"}).Text(), "not a folder")
}

func TestSH06EnvThatChangesWhatRuns(t *testing.T) {
	s := newSession(t, &reach.Runner{})
	for _, name := range []string{"a b", "x;touch PWN;y", "", "1a", "é", "a=b"} {
		res := s.call("Shell", map[string]any{"command": "ls", "env": map[string]string{name: "x"}})
		if !res.IsError {
			t.Errorf("%q was set", name)
		}
	}
	if s.exists("PWN") {
		t.Error("a variable's name was run")
	}
}

func TestB01ReturnsWhenTheShellExits(t *testing.T) {
	s := newSession(t, &reach.Runner{})
	for _, c := range []string{"sleep 300 & echo done", "setsid sleep 300 & echo done", "sleep 300 </dev/null >/dev/null & echo done"} {
		quick(t, func() { wants(t, s.bash(c), "done") })
	}
}

func TestB02NoisyBackground(t *testing.T) {
	s := newSession(t, &reach.Runner{})
	quick(t, func() {
		got := s.bash("(while :; do echo x; sleep .05; done) & echo fg")
		wants(t, got, "fg")
		if strings.Count(got, "x") > 2000 {
			t.Errorf("output grows: %q", got)
		}
	})
}

func TestB04B05EmptyStdin(t *testing.T) {
	s := newSession(t, &reach.Runner{})
	quick(t, func() {
		wants(t, s.bash("cat"), "without output")
		wants(t, s.bash("cat <<EOF\nhi\nEOF\nread x || echo EOF seen"), "hi\nEOF seen")
	})
}

func TestB07B08SplitRunes(t *testing.T) {
	s := newSession(t, &reach.Runner{})
	got := s.bash(`printf 'cleanup \xe2'; sleep .05; printf '\x80\x94 end'`)
	if got != "cleanup — end" {
		t.Errorf("got %q", got)
	}
	got = s.bash(`printf '\xf0'; sleep .05; echo err >&2; sleep .05; printf '\x9f\x98\x80'`)
	wants(t, got, "😀", "err")
	if strings.Contains(got, "\uFFFD") {
		t.Errorf("got %q", got)
	}
}

func TestB10SH25Floods(t *testing.T) {
	s := newSession(t, &reach.Runner{})
	res := s.call("Bash", map[string]any{"command": "head -c 30000000 /dev/zero | tr '\\0' x; echo; echo end", "timeout": 600})
	text := res.Text()
	wants(t, text, "28.5 MB left out (truncated)", "end", "The whole output, 28.6 MB, is in ")
	if len(text) > 110<<10 {
		t.Errorf("answer has %d bytes", len(text))
	}
	log := regexp.MustCompile(`is in (\S+):`).FindStringSubmatch(text)
	if info, err := os.Stat(log[1]); err != nil || info.Size() != 30_000_005 {
		t.Errorf("log: %v, %v", info, err)
	}
	// Nothing that talks is spared by the clock.
	quick(t, func() {
		wants(t, s.call("Bash", map[string]any{"command": "yes | sed s/y/n/ > /dev/null", "timeout": 0.5}).Text(), "took longer than 500ms")
	})
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.Sys > 100<<20 {
		t.Errorf("%d MB of memory in use", m.Sys>>20)
	}
	wants(t, s.call("Bash", map[string]any{"command": "yes | head -c 2000000000", "timeout": 600}).Text(), "left out", "more than the log may hold")
}

func TestLogsOfShortOutputsAreNotKept(t *testing.T) {
	s := newSession(t, &reach.Runner{})
	s.bash("echo hi")
	if left, _ := os.ReadDir(s.logs); len(left) != 0 {
		t.Errorf("%d logs are left", len(left))
	}
}

func TestB12WorkingDirectory(t *testing.T) {
	s := newSession(t, &reach.Runner{})
	os.MkdirAll(filepath.Join(s.dir, "sub/deep"), 0o755)
	wants(t, s.bash("cd sub"), "Working directory: sub")
	if got := s.bash("pwd"); got != filepath.Join(s.dir, "sub") {
		t.Errorf("pwd gives %q", got)
	}
	res := s.call("Bash", map[string]any{"command": "cd deep && sleep 100", "background": true})
	wants(t, res.Text(), "Started job-", "did not change: it is sub")
	wants(t, s.bash("pwd; cd /"), "/sub", "outside the workspace", "kept inside the workspace: the next command starts in sub")
	wants(t, s.bash("cd .. && cd /"), `ended in "/", outside the workspace`, "starts in sub")
	wants(t, s.bash("cd deep; false"), "Exit code 1.", "Working directory: sub/deep")
	wants(t, s.bash("cd ..; exit 7"), "Exit code 7.", "Working directory: sub")
	wants(t, s.bash("cd ..; rm -r sub"), "Working directory: .")
	wants(t, s.bash("mkdir gone; cd gone"), "Working directory: gone")
	os.Remove(filepath.Join(s.dir, "gone"))
	wants(t, s.bash("pwd"), "is gone")
	if got := s.bash("pwd"); got != s.dir {
		t.Errorf("pwd gives %q", got)
	}
}

func TestBackgroundJobs(t *testing.T) {
	s := newSession(t, &reach.Runner{})
	job := func(a map[string]any) string { return s.call("BashJob", a).Text() }
	wants(t, job(nil), "No job runs")
	res := s.call("Bash", map[string]any{"command": "echo one; while ! [ -e go ]; do sleep .02; done; echo two; sleep 300", "background": true})
	id := regexp.MustCompile(`job-\d+`).FindString(res.Text())
	waitFor(t, func() bool { return strings.Contains(job(map[string]any{"id": id, "all": true}), "one\n") })
	s.bash("touch go")
	waitFor(t, func() bool { return strings.Contains(job(map[string]any{"id": id, "all": true}), "two\n") })
	wants(t, job(map[string]any{"id": id}), id+" (running", "nothing new")
	wants(t, job(nil), id+" (running")
	quick(t, func() {
		wants(t, job(map[string]any{"id": id, "kill": true, "all": true}), "one\ntwo", "ended by SIGTERM")
	})
	wants(t, job(map[string]any{"id": "job-99"}), "no job")
	log := regexp.MustCompile(`goes to (\S+)\. `).FindStringSubmatch(res.Text())
	if text, err := os.ReadFile(log[1]); err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("log holds %q, %v", text, err)
	}
}

func waitFor(t testing.TB, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatal("it did not happen")
}

func TestCloseEndsJobs(t *testing.T) {
	s := newSession(t, &reach.Runner{})
	s.call("Bash", map[string]any{"command": "echo $$ > pid; sleep 300", "background": true})
	waitFor(t, func() bool { return s.exists("pid") })
	quick(t, func() { s.shell.Close() })
	pid, _ := os.ReadFile(filepath.Join(s.dir, "pid"))
	if err := exec.Command("kill", "-0", strings.TrimSpace(string(pid))).Run(); err == nil {
		t.Error("the job still runs")
	}
}

func TestCancellation(t *testing.T) {
	s := newSession(t, &reach.Runner{})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	quick(t, func() {
		if _, err := s.callCtx(ctx, "Bash", map[string]any{"command": "sleep 300"}); err == nil {
			t.Error("no error")
		}
	})
}

func TestCriticalCommandsAreRefused(t *testing.T) {
	s := newSession(t, &reach.Runner{})
	for _, c := range []string{"rm -rf /", "mkfs.ext4 /dev/sda", ":(){ :|:& };:", "dd if=/dev/zero of=/dev/sda"} {
		wants(t, s.bash("touch PWN; "+c), "refused")
	}
	if s.exists("PWN") {
		t.Error("a part of the command ran")
	}
}

func TestNeedsAGrant(t *testing.T) {
	s := newSession(t, &reach.Runner{})
	g, _ := policy.New("test", policy.Grant{Cap: abi.FSRead, Scope: []string{"/ws/**"}})
	_, err := s.tools["Bash"].Call(t.Context(), host.Call{Tool: "Bash", Args: []byte(`{"command":"touch PWN"}`), Rights: policy.Rights{Grants: g}})
	if err == nil || s.exists("PWN") {
		t.Errorf("it ran without a grant: %v", err)
	}
}

func TestSH22OffWherePolicyNeedsASandbox(t *testing.T) {
	s := newSession(t, &reach.Runner{})
	s.shell.Sandboxed = true
	wants(t, s.bash("touch PWN"), "Commands are off", "doctor")
	if s.exists("PWN") {
		t.Error("it ran")
	}
	wants(t, s.tools["Bash"].Spec().Description, "No kernel sandbox is in force")
}

func TestSH08GitRunsNothingOfTheRepository(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	s := newSession(t, &reach.Runner{})
	wants(t, s.bash(`git init -q . && echo a > f && git add f && git -c user.name=x -c user.email=x@y commit -qm a && echo b > f && echo ok`), "ok")
	evil := filepath.Join(s.dir, "evil")
	os.WriteFile(evil, []byte("#!/bin/sh\ntouch "+filepath.Join(s.dir, "PWN")+"\n"), 0o755)
	os.WriteFile(filepath.Join(s.dir, ".git/hooks/post-index-change"), []byte("#!/bin/sh\ntouch "+filepath.Join(s.dir, "PWN")+"\n"), 0o755)
	set := func(k string) {
		if out, err := exec.Command("git", "-C", s.dir, "config", k, evil).CombinedOutput(); err != nil {
			t.Fatal(string(out))
		}
	}
	for _, k := range []string{"core.fsmonitor", "diff.external", "core.pager"} {
		set(k)
	}
	wants(t, s.bash("git status --short; git diff; git log"), "M f", "+b", "Author")
	if s.exists("PWN") {
		t.Error("the repository's configuration ran a program")
	}
}

func TestSH12PagersOfTheHost(t *testing.T) {
	t.Setenv("PAGER", "touch PWN")
	t.Setenv("GIT_PAGER", "touch PWN")
	t.Setenv("MY_API_KEY", "secret-value")
	s := newSession(t, &reach.Runner{})
	if got := s.bash("echo $PAGER; env"); strings.Contains(got, "PWN") || strings.Contains(got, "secret-value") {
		t.Errorf("the host's environment shows: %s", got)
	}
}

// The rest holds whatever the command is, because the kernel holds it.

// A signal is told as one, and a status of the same number as a status.
func TestSignalsOfSandboxedCommands(t *testing.T) {
	for name, r := range map[string]*reach.Runner{"sandbox": sandboxed(t), "bare": {}} {
		s := newSession(t, r)
		for command, want := range map[string]string{
			"kill -9 $$":              `"exitStatus":{"exitCode":null,"signal":"SIGKILL"}`,
			"kill -TERM $$":           `"exitStatus":{"exitCode":null,"signal":"SIGTERM"}`,
			"exec sh -c 'kill -9 $$'": `"exitStatus":{"exitCode":null,"signal":"SIGKILL"}`,
			"exit 137":                `"exitStatus":{"exitCode":137,"signal":null}`,
			"sh -c 'kill -9 $$'; :":   `"exitStatus":{"exitCode":0,"signal":null}`,
			"sh -c 'kill -9 $$'":      `"exitStatus":{"exitCode":137,"signal":null}`,
			"exit 255":                `"exitStatus":{"exitCode":255,"signal":null}`,
		} {
			for _, tool := range []string{"Bash", "Shell"} {
				if got := s.call(tool, map[string]any{"command": command}); !strings.Contains(string(got.Structured), want) {
					t.Errorf("%s, %s %q: %s, want %s", name, tool, command, got.Structured, want)
				}
			}
		}
		res := s.call("Bash", map[string]any{"command": "sleep .1; kill -9 $$", "background": true})
		id := regexp.MustCompile(`job-\d+`).FindString(res.Text())
		waitFor(t, func() bool {
			return strings.Contains(s.call("BashJob", map[string]any{"id": id}).Text(), "ended by SIGKILL")
		})
	}
}

func TestSH16SandboxHidesWhatIsOutside(t *testing.T) {
	s := newSession(t, sandboxed(t))
	canary := filepath.Join(filepath.Dir(s.dir), "canary")
	if err := os.WriteFile(canary, []byte("nobody-s"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"cd .. && cat canary", "pushd / ; cat " + canary, "cat ../canary", "find .. -name canary -exec cat {} ;", "echo x > ../canary"} {
		if got := s.bash(c); strings.Contains(got, "nobody-s") {
			t.Errorf("%q shows %s", c, got)
		}
		s.shell.cwd = policy.Workspace
	}
	if text, _ := os.ReadFile(canary); string(text) != "nobody-s" {
		t.Errorf("the file outside holds %q", text)
	}
}

// SH-01 to SH-10: whatever form a command is hidden in, it writes nothing outside.
func TestSHFormsWriteNothingOutside(t *testing.T) {
	s := newSession(t, sandboxed(t))
	pwn := filepath.Join(filepath.Dir(s.dir), "PWN")
	for _, c := range []string{
		"ls\ntouch PWN", "ls && touch PWN", "ls | tee PWN", "ls & touch PWN", "false || touch PWN",
		"echo $(touch PWN)", "echo `touch PWN`", "cat <(touch PWN)", "echo ${x:-$(touch PWN)}",
		"(( a[$(touch PWN)] ))", "t\\ouch PWN", "to''uch PWN", `$'\x74ouch' PWN`, "touch${IFS}PWN",
		"find . -exec touch PWN ;", "sed -n '1e touch PWN' f", "sort -o PWN f", "awk 'BEGIN{system(\"touch PWN\")}'", "env touch PWN",
		"echo PWN | xargs touch", "ls(){ touch PWN; }; ls", "eval touch PWN", "exec touch PWN",
	} {
		os.WriteFile(filepath.Join(s.dir, "f"), []byte("x\n"), 0o644)
		s.bash(strings.ReplaceAll(c, "PWN", pwn))
		if _, err := os.Stat(pwn); err == nil {
			t.Fatalf("%q wrote outside the workspace", c)
		}
	}
}

func TestSH19SH21SandboxHasNoSecretsAndNoNetwork(t *testing.T) {
	t.Setenv("MY_API_KEY", "secret-value")
	s := newSession(t, sandboxed(t))
	if got := s.bash("cat /proc/1/environ /proc/self/environ | tr '\\0' '\\n'"); strings.Contains(got, "secret-value") {
		t.Error("a secret of the host is in an environment")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if got := s.bash("echo x > /dev/tcp/127.0.0.1/" + port + " && echo reached"); strings.Contains(got, "reached") {
		t.Error("the network can be reached")
	}
	wants(t, s.bash("cd /tmp && touch x && echo fine"), "fine")
}

func TestSandboxKeepsTheWorkspaceWritable(t *testing.T) {
	s := newSession(t, sandboxed(t))
	os.Mkdir(filepath.Join(s.dir, "sub"), 0o755)
	wants(t, s.bash("cd sub && echo x > ../f && echo y > g"), "Working directory: sub")
	if !s.exists("f") || !s.exists("sub/g") {
		t.Error("files of the workspace were not written")
	}
	if got := s.bash("pwd"); got != filepath.Join(s.dir, "sub") {
		t.Errorf("pwd gives %q", got)
	}
}
