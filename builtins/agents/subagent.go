package agents

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/plain"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
)

// reportBudget bounds one report among several, in bytes.
const reportBudget = 24 << 10

type subagentArgs struct {
	Purpose string `json:"purpose"`
	Tasks   []struct {
		Name   string `json:"name"`
		Prompt string `json:"prompt"`
	} `json:"tasks"`
}

// subagent works on all tasks at once and waits for all: what one did is not
// lost because another failed. Only a cancellation ends it early.
func (r *room) subagent(ctx context.Context, c host.Call) (abi.Result, error) {
	a, err := tool.Args[subagentArgs](c)
	if err != nil {
		return abi.Result{}, err
	}
	reports := make([]string, len(a.Tasks))
	failed := make([]bool, len(a.Tasks))
	var all sync.WaitGroup
	for i, task := range a.Tasks {
		all.Go(func() {
			run, err := r.Runs.Spawn(ctx, agent.Spawn{
				Name: task.Name, Time: r.Time, Prompt: fmt.Sprintf("%s\n\n(This is one of %d tasks, which others work on at the same time. Together they are for: %s)", task.Prompt, len(a.Tasks), a.Purpose),
				Keep: func(s host.Spec) bool { return ours(s) && slices.Contains(client, s.Name) },
			})
			if err != nil {
				reports[i], failed[i] = fmt.Sprintf("It was not started: %v.", err), true
				return
			}
			st, err := run.Wait(ctx)
			if err == nil {
				if seen, err := r.Runs.Status(context.WithoutCancel(ctx), agent.Current(ctx), st.ID); err == nil {
					st = seen
				}
			}
			reports[i], failed[i] = cutReport(st.Tell()), st.Status != agent.Completed
		})
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return abi.Result{}, err
	}
	var b strings.Builder
	n := 0
	for i, task := range a.Tasks {
		mark := "done"
		if failed[i] {
			mark = "not finished"
			n++
		}
		fmt.Fprintf(&b, "## %s (%s)\n\n%s\n\n", plain.Line(task.Name, 100), mark, reports[i])
	}
	res := abi.Text(strings.TrimSpace(b.String()))
	res.IsError = n == len(a.Tasks)
	return res, nil
}

func cutReport(s string) string {
	if len(s) <= reportBudget {
		return s
	}
	return strings.ToValidUTF8(s[:reportBudget], "") + "\n(truncated)"
}
