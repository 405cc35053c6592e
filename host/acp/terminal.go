package acp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/elfhost/elfhost/host/reach"
)

// How long the client may take to end a command, and to answer about it.
const (
	killTime   = 3 * time.Second
	answerTime = 10 * time.Second
)

// Run implements reach.Terminal: a terminal of the editor, in which the person
// sees the command at work.
func (c *Client) Run(ctx context.Context, p reach.Program) (reach.Exit, error) {
	if !c.can.Terminal || c.ses.Load() == nil {
		return reach.Exit{}, errors.ErrUnsupported
	}
	command, args := c.words(p.Argv)
	q := sdk.CreateTerminalRequest{SessionId: c.id(), Command: command, Args: args, Cwd: &p.Dir, OutputByteLimit: &p.Output}
	for _, kv := range p.Env {
		if !inherited(kv) {
			k, v, _ := strings.Cut(kv, "=")
			q.Env = append(q.Env, sdk.EnvVariable{Name: k, Value: v})
		}
	}
	made, err := sdk.SendRequest[sdk.CreateTerminalResponse](c.srv.conn, ctx, sdk.ClientMethodTerminalCreate, q)
	if err != nil {
		if ctx.Err() != nil {
			return reach.Exit{}, ctx.Err()
		}
		return reach.Exit{}, fmt.Errorf("%s did not open a terminal: %s", c.Name(), c.reason(err))
	}
	t := &terminal{c, made.TerminalId}
	defer t.release(ctx)
	c.showTerminal(p.Call, made.TerminalId)
	exit, err := t.wait(ctx, p.Timeout)
	if err != nil && ctx.Err() == nil {
		return reach.Exit{}, fmt.Errorf("%s lost the command: %s", c.Name(), c.reason(err))
	}
	t.output(ctx, &exit, p.Output)
	return exit, ctx.Err()
}

// words are a program and its arguments as the client takes them. Zed gives
// both to a shell; whether it quotes the arguments depends on its version, but
// none touches a command that has no arguments. The protocol, and everybody
// else, has one string for each argument of the program.
func (c *Client) words(argv []string) (command string, args []string) {
	if !strings.HasPrefix(strings.ToLower(c.is), "zed") {
		return argv[0], argv[1:]
	}
	quoted := make([]string, len(argv))
	for i, a := range argv {
		quoted[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " "), nil
}

// terminal is one of the client's.
type terminal struct {
	c  *Client
	id string
}

// ended is the client's word on how a command ended.
type ended struct {
	exit sdk.WaitForTerminalExitResponse
	err  error
}

// wait waits for the end of the command, and ends it when its time is over or
// ctx is.
func (t *terminal) wait(ctx context.Context, most time.Duration) (reach.Exit, error) {
	done := make(chan ended, 1)
	waiting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go func() {
		r, err := sdk.SendRequest[sdk.WaitForTerminalExitResponse](t.c.srv.conn, waiting, sdk.ClientMethodTerminalWaitForExit,
			sdk.WaitForTerminalExitRequest{SessionId: t.c.id(), TerminalId: t.id})
		done <- ended{r, err}
	}()
	var over <-chan time.Time
	if most > 0 {
		timer := time.NewTimer(most)
		defer timer.Stop()
		over = timer.C
	}
	timedOut := false
	select {
	case e := <-done:
		return t.exit(e, false)
	case <-over:
		timedOut = true
	case <-ctx.Done():
	}
	t.kill(ctx)
	select {
	case e := <-done:
		return t.exit(e, timedOut)
	case <-time.After(killTime):
		return reach.Exit{Code: -1, TimedOut: timedOut}, nil
	}
}

func (t *terminal) exit(e ended, timedOut bool) (reach.Exit, error) {
	out := reach.Exit{Code: -1, TimedOut: timedOut}
	if e.err != nil {
		return out, e.err
	}
	if e.exit.ExitCode != nil {
		out.Code = *e.exit.ExitCode
	}
	if e.exit.Signal != nil {
		out.Signal = t.c.srv.line(*e.exit.Signal, 40)
	}
	return out, nil
}

// brief is for what has to be said even after the call was cancelled.
func brief(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), answerTime)
}

func (t *terminal) kill(ctx context.Context) {
	ctx, cancel := brief(ctx)
	defer cancel()
	_, _ = sdk.SendRequest[sdk.KillTerminalResponse](t.c.srv.conn, ctx, sdk.ClientMethodTerminalKill,
		sdk.KillTerminalRequest{SessionId: t.c.id(), TerminalId: t.id})
}

// release gives the terminal back; the client ends what still runs in it.
func (t *terminal) release(ctx context.Context) {
	ctx, cancel := brief(ctx)
	defer cancel()
	_, _ = sdk.SendRequest[sdk.ReleaseTerminalResponse](t.c.srv.conn, ctx, sdk.ClientMethodTerminalRelease,
		sdk.ReleaseTerminalRequest{SessionId: t.c.id(), TerminalId: t.id})
}

// output asks what the command wrote, of which most bytes are kept whatever
// the client sends.
func (t *terminal) output(ctx context.Context, exit *reach.Exit, most int) {
	ctx, cancel := brief(ctx)
	defer cancel()
	r, err := sdk.SendRequest[sdk.TerminalOutputResponse](t.c.srv.conn, ctx, sdk.ClientMethodTerminalOutput,
		sdk.TerminalOutputRequest{SessionId: t.c.id(), TerminalId: t.id})
	if err != nil {
		return
	}
	exit.Output, exit.Truncated = []byte(r.Output), r.Truncated
	if over := len(exit.Output) - most; over > 0 {
		exit.Output, exit.Truncated = exit.Output[over:], true
	}
	if !exit.Truncated {
		exit.Total = int64(len(exit.Output))
	}
	if x := r.ExitStatus; x != nil && exit.Code == -1 && x.ExitCode != nil {
		exit.Code = *x.ExitCode
	}
}
