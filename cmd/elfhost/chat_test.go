//go:build unix

// Over 500 lines: every conversation runs in one terminal driver.

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
)

const chatScript = `
[[turn]]
always = true
when = { prompt = "echo " }
text = "You said: {{prompt}}"
[[turn]]
always = true
when = { prompt = "look", lacks = "hello" }
text = "# Look\nI **look** at it.\n"
[[turn.call]]
tool = "Read"
args = { path = "notes.txt" }
[[turn]]
always = true
when = { prompt = "look", contains = "hello" }
text = "It says hello."
[[turn]]
when = { prompt = "edit" }
[[turn.call]]
tool = "Read"
args = { path = "notes.txt" }
[[turn]]
when = { prompt = "edit", tool = "Read" }
[[turn.call]]
tool = "Edit"
args = { path = "notes.txt", old_string = "hello", new_string = "goodbye" }
[[turn]]
when = { tool = "Edit" }
text = "Edited."
[[turn]]
when = { prompt = "plan" }
[[turn.call]]
tool = "Plan"
args = { entries = [{ content = "look around", priority = "high", status = "in_progress" }] }
[[turn]]
when = { tool = "Plan" }
text = "Planned."
[[turn]]
always = true
when = { prompt = "The background agent" }
text = "I heard of it."
[[turn]]
when = { prompt = "delegate" }
[[turn.call]]
tool = "spawn_agent"
args = { prompt = "CHILD", background = true }
[[turn]]
when = { prompt = "delegate", tool = "spawn_agent" }
text = "Delegated."
[[turn]]
when = { prompt = "CHILD" }
[[turn.call]]
tool = "Bash"
args = { command = "while ! test -e go; do sleep 0.05; done; touch done.txt" }
[[turn]]
when = { prompt = "CHILD", tool = "Bash" }
text = "The child is done."
[[turn]]
always = true
when = { prompt = "rather" }
text = "Steered: {{prompt}}"
[[turn]]
always = true
when = { prompt = "wait", lacks = "waited" }
[[turn.call]]
tool = "Bash"
args = { command = "while ! test -e go; do sleep 0.05; done; echo waited" }
[[turn]]
always = true
when = { prompt = "wait", contains = "waited" }
text = "Waited."
[[turn]]
always = true
when = { prompt = "circle" }
[[turn.call]]
tool = "Read"
args = { path = "notes.txt" }
[[turn]]
always = true
when = { prompt = "only repeats calls" }
[[turn.call]]
tool = "Read"
args = { path = "notes.txt" }
[[turn]]
when = { prompt = "sleep" }
[[turn.call]]
tool = "Bash"
args = { command = "echo x > began; sleep 61.371" }
[[turn]]
when = { tool = "Bash" }
text = "Slept."
`

// talk is a conversation in a terminal.
type talk struct {
	t    *testing.T
	cmd  *exec.Cmd
	ptm  *os.File
	home string
	dir  string

	mu  sync.Mutex
	all bytes.Buffer
	at  int // up to where was waited for
	end chan error
}

// elfhostProgram is this test binary under the name by which it is elfhost.
func elfhostProgram(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "elfhost")
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// chatPlace makes a home and a workspace with a script and a file.
func chatPlace(t *testing.T) (home, dir string) {
	t.Helper()
	home, dir = t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"t.toml": chatScript, "notes.txt": "hello\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return home, dir
}

func newTalk(t *testing.T, home, dir string, env []string, args ...string) *talk {
	t.Helper()
	k := &talk{t: t, home: home, dir: dir, end: make(chan error, 1)}
	k.cmd = exec.Command(elfhostProgram(t), append([]string{"chat", "-m", "scripted/t.toml"}, args...)...)
	k.cmd.Dir = dir
	k.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "ELFHOST_HOME=" + home, "TERM=xterm-256color"}, env...)
	ptm, err := pty.StartWithSize(k.cmd, &pty.Winsize{Rows: 30, Cols: 80})
	if err != nil {
		t.Skipf("no pseudo terminal here: %v", err)
	}
	k.ptm = ptm
	go k.watch()
	t.Cleanup(func() {
		_ = k.cmd.Process.Kill()
		<-k.end
		_ = ptm.Close()
	})
	return k
}

func (k *talk) watch() {
	buf := make([]byte, 4096)
	for {
		n, err := k.ptm.Read(buf)
		k.mu.Lock()
		k.all.Write(buf[:n])
		k.mu.Unlock()
		if err != nil {
			k.end <- k.cmd.Wait()
			close(k.end)
			return
		}
	}
}

func (k *talk) output() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.all.String()
}

// sees waits until a text has come since the last one that was waited for.
func (k *talk) sees(text string) {
	k.t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		out := k.output()
		if i := strings.Index(out[k.at:], text); i >= 0 {
			k.at += i + len(text)
			return
		}
		if time.Now().After(end) {
			k.t.Fatalf("%q did not come. After what was seen before:\n%q", text, out[k.at:])
		}
	}
}

func (k *talk) types(text string) {
	k.t.Helper()
	if _, err := k.ptm.WriteString(text); err != nil {
		k.t.Fatal(err)
	}
}

// answer waits for a question and answers it. A key counts only after a quiet
// period, whose end a busy machine puts off: it is typed until it is echoed.
func (k *talk) answer(keys string) {
	k.t.Helper()
	k.sees("answer [")
	k.sees("]: ")
	for range 50 {
		time.Sleep(600 * time.Millisecond)
		before := len(k.output())
		k.types(keys + "\r")
		for range 200 {
			if time.Sleep(10 * time.Millisecond); len(k.output()) > before {
				return
			}
		}
	}
	k.t.Fatalf("%q does not answer:\n%q", keys, k.output())
}

// leaves waits for the end, and gives the exit status.
func (k *talk) leaves() int {
	k.t.Helper()
	select {
	case err := <-k.end:
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode()
		}
		return 0
	case <-time.After(2 * time.Minute):
		k.t.Fatalf("the conversation does not end:\n%q", k.output())
		return -1
	}
}

func TestChatTurn(t *testing.T) {
	home, dir := chatPlace(t)
	k := newTalk(t, home, dir, nil)
	k.sees("> ")
	k.types("look\r")
	k.sees("\x1b[1mLook\x1b[0m")
	k.sees("\x1b[1mlook\x1b[0m at it.")
	k.sees("Read notes.txt")
	k.sees("It says hello.")
	k.sees("> ")
	k.types("edit\r")
	k.sees("Edit wants to change a file")
	k.answer("1")
	k.sees("\x1b[31m-hello\x1b[0m")
	k.sees("\x1b[32m+goodbye\x1b[0m")
	k.sees("Edited.")
	k.sees("> ")
	k.types("plan\r")
	k.sees("look around")
	k.sees("Planned.")
	k.types("/mode plan\r")
	k.sees("mode plan")
	k.types("/nothing\r")
	k.sees("no such command")
	k.types("/cost\r")
	k.sees("tokens in")
	k.sees("> ")
	k.types("\x04")
	k.sees("to go on: elfhost chat -r ses_")
	if code := k.leaves(); code != 0 {
		t.Errorf("exit status %d", code)
	}

	// Another process goes on where this one stopped, with its history.
	k = newTalk(t, home, dir, nil, "-c")
	k.sees("going on with ses_")
	k.sees("Planned.")
	k.sees("> ")
	k.types("/plan\r")
	k.sees("look around (high)")
	k.sees("> ")
	k.types("\x1b[A\x1b[A") // up, past /plan: /cost
	k.sees("/cost")
	k.types("\x15echo more\r")
	k.sees("You said: echo more")
	k.sees("> ")
	k.types("/clear\r")
	k.sees("a new session")
	k.types("/sessions\r")
	k.sees("look") // the title of the old one
}

// TestChatSaysWhyItStopped: in the words of run, with what helps here.
func TestChatSaysWhyItStopped(t *testing.T) {
	home, dir := chatPlace(t)
	k := newTalk(t, home, dir, nil)
	k.sees("> ")
	k.types("circle\r")
	k.sees("the model went in circles: it made the same calls")
	k.sees("/model")
	k.sees("> ")
	k.types("echo again\r")
	k.sees("You said: echo again")
}

func TestChatWritesSeveralLines(t *testing.T) {
	home, dir := chatPlace(t)
	k := newTalk(t, home, dir, nil)
	k.sees("> ")
	k.types("\x1b[200~echo one\r\ntwo\rthree\x03\x1b[201~") // a paste sends nothing by itself
	time.Sleep(300 * time.Millisecond)
	if strings.Contains(k.output(), "You said") {
		t.Fatal("a paste was sent before Enter")
	}
	k.types("\r")
	k.sees("You said: echo one\r\ntwo\r\nthree")
	k.sees("> ")
	k.types("echo a\\\rb\nc\x1b\rd\r") // backslash, Ctrl-J, Alt-Enter
	k.sees("You said: echo a\r\nb\r\nc\r\nd")
	k.sees("> ")
	k.types("echo naïve 漢字x\x7f\x1b[D\x1b[D!\r") // backspace, left twice
	k.sees("You said: echo naïve !漢字")
}

// TestChatSteering: what is sent while the agent works, it reads after its
// step; a command waits for the end; what was not sent is not lost.
func TestChatSteering(t *testing.T) {
	home, dir := chatPlace(t)
	k := newTalk(t, home, dir, nil, "--mode", "auto")
	k.sees("> ")
	k.types("wait\r")
	k.sees("Bash while")
	k.types("rather dox\x7f this\r")
	k.sees("(1 queued)")
	k.types("/cost\r")
	k.sees("(2 queued)")
	k.types("echo un")
	k.sees("echo un")
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k.sees("\x1b[2m> rather do this")
	k.sees("Steered: rather do this")
	k.sees("> \x1b[0m/cost")
	k.sees("tokens in")
	k.sees("echo un")
	k.types("sent\r")
	k.sees("You said: echo unsent")
	k.sees("> ")
	// A turn that was ended gives back what nobody has read.
	if err := os.Remove(filepath.Join(dir, "go")); err != nil {
		t.Fatal(err)
	}
	k.types("wait again\r")
	k.sees("Bash while")
	k.types("echo later\r")
	k.sees("(1 queued)")
	k.types("\x03")
	k.sees("interrupted")
	k.sees("echo later")
	k.types("!\r")
	k.sees("You said: echo later!")
}

// TestChatSteeringWithFiles: what is sent while the agent works brings along the
// files that it names, as they are when the agent reads it, and is shown as it
// was typed.
func TestChatSteeringWithFiles(t *testing.T) {
	home, dir := chatPlace(t)
	k := newTalk(t, home, dir, nil, "--mode", "auto")
	k.sees("> ")
	k.types("wait\r")
	k.sees("Bash while")
	k.types("rather @late.txt and @none.txt\r")
	k.sees("(1 queued)")
	for name, text := range map[string]string{"late.txt": "written meanwhile", "go": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k.sees("@none.txt was not read: there is no such file")
	k.sees("\x1b[2m> rather @late.txt and @none.txt\x1b[0m\r\n")
	k.sees("Steered: rather @late.txt and @none.txt")
	k.sees("written meanwhile")
}

// TestChatBackgroundModel: the small model names a session after its first
// turn, and writes the minutes.
func TestChatBackgroundModel(t *testing.T) {
	home, dir := chatPlace(t)
	for name, text := range map[string]string{
		filepath.Join(home, "config.toml"): "background_model = \"scripted/small.toml\"\n",
		filepath.Join(dir, "small.toml"):   "[[turn]]\nalways = true\nwhen = { system = \"title\" }\ntext = \"About echoes\"\n[[turn]]\nalways = true\ntext = \"The small minutes.\"\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k := newTalk(t, home, dir, nil)
	k.sees("> ")
	k.types("echo one " + strings.Repeat("and more ", 400) + "\r")
	k.sees("You said: echo one")
	for end := time.Now().Add(2 * time.Minute); !strings.Contains(k.output(), "About echoes"); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no title comes:\n%q", k.output())
		}
		k.types("/sessions\r")
	}
	k.sees("About echoes")
	k.types("echo two\r")
	k.sees("You said: echo two")
	k.types("/compact\r")
	k.sees("messages became")
	k.types("\x04")
	k.leaves()
	out, err := exec.Command("sh", "-c", "cd "+dir+" && ELFHOST_HOME="+home+" "+elfhostProgram(t)+" session show ses_").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "# About echoes") || !strings.Contains(string(out), "The small minutes.") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestChatBackground: an agent in the background asks while the person writes;
// the line gives way, and is taken up again with what was written.
func TestChatBackground(t *testing.T) {
	home, dir := chatPlace(t)
	k := newTalk(t, home, dir, nil)
	k.sees("> ")
	k.types("delegate\r")
	k.sees("spawn_agent wants to run")
	k.answer("1")
	k.sees("Bash wants to run a command") // before or after the turn that it came in
	k.sees("sub-agent in step 1")
	k.answer("1")
	k.sees("allow once")
	k.sees("> ")
	k.types("echo half")
	k.sees("echo half")
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k.sees("[agent] \x1b[0mcompleted, after 2 steps")
	k.sees("echo half")
	k.types(" and half\r")
	k.sees("echo half and half")
	k.sees("> [The background agent")
	k.sees("I heard of it.")
	if !strings.Contains(k.output(), "Delegated.") {
		t.Errorf("the first turn did not end: %q", k.output())
	}
	if _, err := os.Stat(filepath.Join(dir, "done.txt")); err != nil {
		t.Error(err)
	}
}

// TestChatKeys: Ctrl-R finds what was said before, Tab completes.
func TestChatKeys(t *testing.T) {
	home, dir := chatPlace(t)
	k := newTalk(t, home, dir, nil)
	k.sees("> ")
	for _, text := range []string{"echo first", "echo second"} {
		k.types(text + "\r")
		k.sees("You said: " + text)
		k.sees("> ")
	}
	k.types("\x12FIR")
	k.sees("history: FIR > ")
	k.types("\x05 again\r")
	k.sees("You said: echo first again")
	k.sees("> ")
	k.types("echo no\t!\r") // a file
	k.sees("You said: echo notes.txt!")
	k.sees("> ")
	k.types("/co\t")
	k.sees("/compact")
	k.sees("/cost")
	k.types("s\t\r")
	k.sees("tokens in")
	k.sees("> ")
	k.types("/mode acc\t\r")
	k.sees("mode acceptEdits")
}

// TestChatInterrupt: one Ctrl-C ends the turn with all its processes, and the
// conversation goes on; at the prompt one warns and a second one leaves.
func TestChatInterrupt(t *testing.T) {
	home, dir := chatPlace(t)
	k := newTalk(t, home, dir, nil, "--mode", "auto")
	k.sees("> ")
	k.types("sleep\r")
	k.sees("Bash echo x > began; sleep 61.371")
	waitForFile(t, filepath.Join(dir, "began"))
	k.types("\x03")
	k.sees("interrupted")
	k.sees("> ")
	if p := runs(dir, "61.371"); p != "" {
		t.Errorf("process %s goes on", p)
	}
	k.types("echo alive\r")
	k.sees("You said: echo alive")
	k.sees("> ")
	k.types("half\x03") // clears what was written
	k.sees("> ")
	k.types("\x03")
	k.sees("Ctrl-C again leaves")
	k.types("\x03")
	if code := k.leaves(); code != 130 {
		t.Errorf("exit status %d, want 130", code)
	}
}

// TestChatInterruptTwice leaves in the middle of a turn.
func TestChatInterruptTwice(t *testing.T) {
	// The kernel makes one signal of two that come at once, and on a busy
	// machine the turn may have ended when the second comes.
	for try := range 5 {
		home, dir := chatPlace(t)
		k := newTalk(t, home, dir, nil, "--mode", "auto")
		k.sees("> ")
		k.types("sleep\r")
		waitForFile(t, filepath.Join(dir, "began"))
		k.types("\x03")
		time.Sleep(time.Duration(150*(try+1)) * time.Millisecond)
		k.types("\x03")
		select {
		case <-k.end:
		case <-time.After(30 * time.Second):
			t.Logf("%q", k.output())
			continue
		}
		if code := k.cmd.ProcessState.ExitCode(); code != 130 {
			t.Errorf("exit status %d, want 130:\n%q", code, k.output())
		}
		return
	}
	t.Error("it does not end")
}

// TestChatInterruptAtQuestion: Ctrl-C is a no, and ends the turn.
func TestChatInterruptAtQuestion(t *testing.T) {
	home, dir := chatPlace(t)
	k := newTalk(t, home, dir, nil)
	k.sees("> ")
	k.types("sleep\r")
	k.sees("answer [1-")
	k.types("\x03")
	k.sees("interrupted")
	k.sees("> ")
	if _, err := os.Stat(filepath.Join(dir, "began")); err == nil {
		t.Error("what was not answered was run")
	}
}

// TestChatPlain: where no escape sequence is wanted there is not one, from the
// first byte to the last, questions and errors included.
func TestChatPlain(t *testing.T) {
	for _, env := range [][]string{{"TERM=dumb"}, {"ACCESSIBLE=1"}} {
		home, dir := chatPlace(t)
		k := newTalk(t, home, dir, env)
		k.sees("> ")
		k.types("half\x03")
		k.sees("Ctrl-C again leaves")
		k.sees("> ")
		k.types("look\r")
		k.sees("I **look** at it.")
		k.sees("It says hello.")
		k.sees("> ")
		k.types("edit\r")
		k.answer("1")
		k.sees("+goodbye")
		k.sees("Edited.")
		k.types("/help\r")
		k.sees("/compact")
		k.types("echo a\\\r")
		k.types("b\r")
		k.sees("You said: echo a\r\nb")
		k.types("\x04")
		if code := k.leaves(); code != 0 {
			t.Errorf("%v: exit status %d", env, code)
		}
		if i := strings.IndexByte(k.output(), 0x1b); i >= 0 {
			t.Errorf("%v: an escape sequence at byte %d: %q", env, i, k.output()[max(0, i-60):min(i+20, len(k.output()))])
		}
	}
}

// TestChatResize: rows and the status line fit the window as it is, not as it was.
func TestChatResize(t *testing.T) {
	home, dir := chatPlace(t)
	k := newTalk(t, home, dir, nil, "--mode", "auto")
	k.sees("> ")
	if err := pty.Setsize(k.ptm, &pty.Winsize{Rows: 30, Cols: 36}); err != nil {
		t.Fatal(err)
	}
	k.types("wait\r")
	k.sees("Bash while")
	k.sees("\x1b[K\x1b[2m") // the status line
	time.Sleep(300 * time.Millisecond)
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k.sees("Waited.")
	k.sees("> ")
	from := k.at
	k.types("echo " + strings.Repeat("word ", 30) + "\r")
	k.sees("You said: echo")
	k.sees("> \x1b[0m")
	for _, row := range strings.Split(k.output()[from:k.at], "\n") {
		for _, drawn := range strings.Split(row, "\r\x1b[K") {
			if w := ansi.StringWidth(strings.TrimRight(drawn, "\r")); w > 36 && !strings.Contains(drawn, "\x1b[J") {
				t.Errorf("%d columns of 36: %q", w, drawn)
			}
		}
	}
	for _, drawn := range regexp.MustCompile(`\r\x1b\[K(\x1b\[2m[^\r\n]+)`).FindAllStringSubmatch(k.output(), -1) {
		if w := ansi.StringWidth(drawn[1]); w > 35 {
			t.Errorf("a status line of %d columns of 36: %q", w, drawn[1])
		}
	}
}

// TestChatPlainSteering: without a line editor, too, the agent reads after its
// step what is sent while it works.
func TestChatPlainSteering(t *testing.T) {
	home, dir := chatPlace(t)
	k := newTalk(t, home, dir, []string{"TERM=dumb"}, "--mode", "auto")
	k.sees("> ")
	k.types("wait\r")
	k.sees("Bash while")
	k.types("rather this\r")
	k.sees("(1 queued)")
	k.types("/cost\r")
	k.sees("(2 queued)")
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k.sees("Steered: rather this")
	k.sees("tokens in")
	k.sees("> ")
	if err := os.Remove(filepath.Join(dir, "go")); err != nil {
		t.Fatal(err)
	}
	k.types("wait again\r")
	k.sees("Bash while")
	k.types("echo later\r")
	k.sees("(1 queued)")
	k.types("\x03")
	k.sees("interrupted")
	k.sees("not sent: echo later")
	k.types("echo alive\r")
	k.sees("You said: echo alive")
	if strings.Contains(k.output(), "\x1b") {
		t.Errorf("an escape sequence: %q", k.output())
	}
}

// TestChatWithoutColour: NO_COLOR takes the colours, and nothing else: there is
// the line editor, and the agent can be steered.
func TestChatWithoutColour(t *testing.T) {
	home, dir := chatPlace(t)
	k := newTalk(t, home, dir, []string{"NO_COLOR=1"}, "--mode", "auto")
	k.sees("> ")
	k.types("look\r")
	k.sees("# Look\r\n")
	k.sees("I look at it.")
	k.sees("It says hello.")
	k.sees("> ")
	k.types("cho a\x01e\x05b\r")
	k.sees("You said: echo ab")
	k.sees("> ")
	k.types("wait\r")
	k.sees("Bash while")
	k.types("rather this\r")
	k.sees("(1 queued)")
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k.sees("Steered: rather this")
	if painted := regexp.MustCompile("\x1b\\[[0-9;]*m").FindString(k.output()); painted != "" {
		t.Errorf("a colour: %q", painted)
	}
}

func waitForFile(t *testing.T, name string) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if b, err := os.ReadFile(name); err == nil && len(bytes.TrimSpace(b)) > 0 {
			return
		}
	}
	t.Fatalf("%s was not made", name)
}

// runs finds a sleep with this word as its argument in a folder (Linux).
func runs(dir, word string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		if b, err := os.ReadFile(name); err == nil && bytes.Contains(b, []byte("sleep\x00"+word)) {
			if in, err := os.Readlink(filepath.Join(filepath.Dir(name), "cwd")); err == nil && in != dir {
				continue // another test's
			}
			return name
		}
	}
	return ""
}
