package shell

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/reach"
)

// job is a command in the background.
type job struct {
	*reach.Job
	n       int
	id      string
	command string
	log     string
	began   time.Time

	mu    sync.Mutex
	shown int64 // bytes of the output that were reported
}

// begin starts a command in the background. It outlives the call, not the session.
func (s *Shell) begin(ctx context.Context, c host.Call, r request) (abi.Result, error) {
	if s.Logs == "" {
		return abi.Errorf("Nothing can run in the background here: there is no folder for its output."), nil
	}
	s.mu.Lock()
	running := 0
	for _, j := range s.jobs {
		if j.running() {
			running++
		}
	}
	s.mu.Unlock()
	if running >= mostJobs {
		return abi.Errorf("%d jobs run in the background already. End one first.", running), nil
	}
	r.timeout = 0
	p, err := s.programFor(r, "")
	if err != nil {
		return abi.Result{}, err
	}
	p.Log = s.logFile(c.ID)
	started, err := s.Runner.Start(ctx, c.Rights, p)
	if err != nil {
		removeLog(p.Log)
		return abi.Result{}, err
	}
	s.mu.Lock()
	s.started++
	j := &job{Job: started, n: s.started, id: fmt.Sprintf("job-%d", s.started), command: r.command, log: p.Log, began: time.Now()}
	s.jobs[j.id] = j
	s.mu.Unlock()
	watch := "BashJob"
	if s.ACP {
		watch = "ShellJob"
	}
	return abi.Textf("Started %s in the background. Its output goes to %s. %s with id %q shows what is new, with kill ends it. The working directory did not change: it is %s.",
		j.id, j.log, watch, j.id, s.Tree.Display("", s.Dir())), nil
}

func (j *job) running() bool {
	select {
	case <-j.Done():
		return false
	default:
		return true
	}
}

func (j *job) status() string {
	if j.running() {
		return fmt.Sprintf("running for %v", time.Since(j.began).Round(time.Second))
	}
	e := signalled(j.Peek(), end{})
	switch {
	case e.LogFull:
		return "stopped: its log is full"
	case e.TooMany:
		return "stopped: it started too many processes"
	case e.Signal != "":
		return "ended by " + e.Signal
	}
	return fmt.Sprintf("ended with exit code %d", e.Code)
}

// report gives what the job wrote since the last report, or all that is kept.
func (j *job) report(all bool) abi.Result {
	status := j.status() // before the output: what ends meanwhile is told next time
	e := j.Peek()
	j.mu.Lock()
	shown := j.shown
	j.shown = e.Total
	j.mu.Unlock()
	o := outcome{exit: e, text: e.Output, head: e.Head, truncated: e.Truncated, total: e.Total}
	if fresh := e.Total - shown; !all && shown > 0 {
		if fresh <= int64(len(o.text)-o.head) || !o.truncated {
			o.text, o.truncated = o.text[max(int64(len(o.text))-fresh, 0):], false
		}
		if fresh == 0 {
			return abi.Textf("%s (%s): nothing new.", j.id, status)
		}
	}
	notes := []string{fmt.Sprintf("%s: %s. Its whole output is in %s.", j.id, status, j.log)}
	return abi.Text(joinLines(o.output(), notes))
}
