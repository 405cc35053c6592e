package pdk

import (
	"context"
	"time"

	"github.com/elfhost/elfhost/abi"
)

// Command is one program to run, without a shell. It needs the capability
// exec with a pattern that the whole of Argv matches.
type Command struct {
	Argv    []string
	Dir     string // a virtual path; /ws when empty
	Stdin   []byte
	Timeout time.Duration // zero: the call's own deadline
}

// Finished is how a Command ended.
type Finished struct {
	ExitCode  int
	Signal    string // that ended it, if one did
	Stdout    []byte
	Stderr    []byte
	Truncated bool // the output was over the limit
	TimedOut  bool
}

// Exec runs a program and waits for it. An exit code other than 0 is no error.
func Exec(ctx context.Context, c Command) (Finished, error) {
	header := struct {
		Argv      []string `json:"argv"`
		Dir       string   `json:"dir,omitempty"`
		TimeoutMS int64    `json:"timeout_ms,omitempty"`
	}{c.Argv, c.Dir, c.Timeout.Milliseconds()}
	var reply struct {
		ExitCode  int    `json:"exit_code"`
		Signal    string `json:"signal"`
		Stdout    int    `json:"stdout"`
		Stderr    int    `json:"stderr"`
		Truncated bool   `json:"truncated"`
		TimedOut  bool   `json:"timed_out"`
	}
	body, err := opExec.do(ctx, header, c.Stdin, &reply)
	if err != nil {
		return Finished{}, err
	}
	if reply.Stdout < 0 || reply.Stderr < 0 || reply.Stdout+reply.Stderr != len(body) {
		return Finished{}, &Error{Op: "elf:exec.run", Code: abi.ErrInternal, Detail: errFrame.Error()}
	}
	return Finished{
		ExitCode: reply.ExitCode, Signal: reply.Signal, Truncated: reply.Truncated, TimedOut: reply.TimedOut,
		Stdout: body[:reply.Stdout:reply.Stdout], Stderr: body[reply.Stdout:],
	}, nil
}
