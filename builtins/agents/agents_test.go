package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/policy"
)

// What a child has without being given anything: file, shell and web tools,
// and what is inherited.
func TestUsualTools(t *testing.T) {
	for name, c := range map[string]struct{ args, want string }{
		"usual":   {`{"prompt":"CHILD"}`, "Bash Grep Read ReadFile Shell WebFetch Write list_skills mcp__git__log mcp__web__get slash_command"},
		"empty":   {`{"prompt":"CHILD","tools":[]}`, "Bash Grep Read ReadFile Shell WebFetch Write list_skills mcp__git__log mcp__web__get slash_command"},
		"star":    {`{"prompt":"CHILD","tools":["*"]}`, "Bash Grep Read ReadFile Shell WebFetch Write list_skills mcp__git__log mcp__web__get slash_command"},
		"cut":     {`{"prompt":"CHILD","tools":["Read","mcp__git__*","NoSuchTool"]}`, "Read mcp__git__log"},
		"named":   {`{"prompt":"CHILD","tools":["Read","weather","spawn_agent","subagent_status"]}`, "Read spawn_agent subagent_status weather"},
		"refused": {`{"prompt":"CHILD","tools":["Notify","SessionsSend","skillhub_install"]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, Options{}, &host.Gate{Mode: host.ModeAuto}, map[string][]answer{"": {does("spawn_agent", c.args)}, "CHILD": nil})
			h.run(context.Background())
			if got := strings.Join(offered(h.model.request(t, "CHILD")), " "); got != c.want {
				t.Errorf("offered %s\nwant    %s", got, c.want)
			}
		})
	}
}

// SES-03: from plan mode nothing is escalated, whatever is asked for.
func TestSES03FromPlanMode(t *testing.T) {
	h := newHouse(t, Options{}, &host.Gate{Mode: host.ModePlan}, map[string][]answer{
		"":      {does("spawn_agent", `{"prompt":"CHILD","permissionMode":"bypass","tools":["*"],"maxIterations":1000000000}`, `{"prompt":"CHILD","tools":["*"],"maxIterations":1000000000}`)},
		"CHILD": {does("Write", "{}"), does("Bash", `{"command":"touch x"}`), does("Read", "{}"), says("tried")},
	})
	h.loop.Limits.Steps = 9
	h.run(context.Background())
	res := h.results()
	if !res[0].IsError || !strings.Contains(res[0].Text(), "plan") || res[1].IsError {
		t.Errorf("%s\n%s", res[0].Text(), res[1].Text())
	}
	if !slices.Equal(h.ran, []string{"Read{}"}) {
		t.Errorf("ran %q", h.ran)
	}
	if got := offered(h.model.request(t, "CHILD")); slices.Contains(got, "Write") || slices.Contains(got, "Bash") {
		t.Errorf("offered %q", got)
	}
}

// A05: a planner's child that is told to write cannot.
func TestA05PlannersChild(t *testing.T) {
	h := newHouse(t, Options{}, &host.Gate{Mode: host.ModePlan}, map[string][]answer{
		"":      {does("spawn_agent", `{"prompt":"CHILD: write it","permissionMode":"plan"}`)},
		"CHILD": {does("Write", "{}", "{}"), does("Bash", `{"command":"touch x"}`)},
	})
	h.run(context.Background())
	if len(h.ran) > 0 {
		t.Errorf("ran %q", h.ran)
	}
}

// A06: what the parent's rules allow, and the request names, runs; nothing else.
func TestA06AllowedCommandRuns(t *testing.T) {
	rule := func(e policy.Effect, text string) policy.Rule {
		p, err := policy.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		return policy.Rule{Pattern: p, Effect: e}
	}
	pol, err := policy.NewPolicy(policy.Layer{Kind: policy.User, Tools: []policy.Rule{
		rule(policy.Only, "Bash(git status:*)"), rule(policy.Only, "spawn_agent"), rule(policy.Allow, "Bash(git status:*)"), rule(policy.Allow, "spawn_agent"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, Options{}, &host.Gate{Policy: pol, Mode: host.ModeAsk}, map[string][]answer{
		"":      {does("spawn_agent", `{"prompt":"CHILD","tools":["Bash(git status:*)"]}`)},
		"CHILD": {does("Bash", `{"command":"git status"}`, `{"command":"git push"}`, `{"command":"git status && git push"}`)},
	})
	h.run(context.Background())
	if !slices.Equal(h.ran, []string{`Bash{"command":"git status"}`}) {
		t.Errorf("ran %q", h.ran)
	}
}

func TestFailedChildIsReportedAsFailed(t *testing.T) {
	h := newHouse(t, Options{}, &host.Gate{Mode: host.ModeAuto}, map[string][]answer{
		"":      {does("spawn_agent", `{"prompt":"CHILD"}`)},
		"CHILD": {{text: "half of it", err: errors.New("boom")}},
	})
	h.run(context.Background())
	if res := h.results()[0]; !res.IsError || !strings.Contains(res.Text(), "failed") || !strings.Contains(res.Text(), "half of it") {
		t.Errorf("%s", res.Text())
	}
	if l := h.runs.List(h.s); len(l) != 0 {
		t.Errorf("a report that was given is still listed: %+v", l)
	}
}

func TestBackground(t *testing.T) {
	release := make(chan struct{})
	h := newHouse(t, Options{}, &host.Gate{Mode: host.ModeAuto}, map[string][]answer{
		"":      {does("spawn_agent", `{"prompt":"CHILD","background":true}`), does("subagent_list", "{}"), says("later")},
		"CHILD": {says("the report")},
	})
	h.model.before = func(_ context.Context, part string) {
		if part == "CHILD" {
			<-release
		}
	}
	h.run(context.Background())
	res := h.results()
	_, id, _ := strings.Cut(res[0].Text(), "runId ")
	id, _, _ = strings.Cut(id, ".")
	if !strings.Contains(res[1].Text(), id+" running") {
		t.Fatalf("%q is not listed in %s", id, res[1].Text())
	}
	close(release)
	if err := h.runs.Wait(context.Background(), h.s); err != nil {
		t.Fatal(err)
	}
	h.model.mu.Lock()
	h.model.parts[""] = append(h.model.parts[""], does("subagent_list", "{}"), does("subagent_status", fmt.Sprintf(`{"runId":%q}`, id)), does("subagent_list", "{}"))
	h.model.mu.Unlock()
	h.run(context.Background())
	res = h.results()[2:]
	if !strings.Contains(res[0].Text(), id+" completed") || !strings.Contains(res[1].Text(), "the report") || strings.Contains(res[2].Text(), id) {
		t.Errorf("%s\n%s\n%s", res[0].Text(), res[1].Text(), res[2].Text())
	}
}

func TestStatusOfWhatIsNotOurs(t *testing.T) {
	h := newHouse(t, Options{}, &host.Gate{}, map[string][]answer{"": {does("subagent_status", `{"runId":"../../etc/passwd"}`, `{"runId":"run_aaaaaaaaaaaaaaaaaaaaaaaaaa"}`)}})
	h.run(context.Background())
	for _, r := range h.results() {
		if !r.IsError || !strings.Contains(r.Text(), "no such run") {
			t.Errorf("%s", r.Text())
		}
	}
	// Outside of a conversation there is nothing to tell.
	if res := h.tools.Invoke(context.Background(), host.Call{Tool: "subagent_list"}); res.IsError {
		t.Errorf("%s", res.Text())
	}
}

// Subagent's children work at the same time; what one did is kept when another
// fails, and one that hangs hits its time (A02).
func TestA02Subagent(t *testing.T) { synctest.Test(t, a02Subagent) }

func a02Subagent(t *testing.T) {
	var mu sync.Mutex
	atWork, most := 0, 0
	all := make(chan struct{})
	h := newHouse(t, Options{ACP: true, Time: 2 * time.Second}, &host.Gate{Mode: host.ModeAuto}, map[string][]answer{
		"":     {does("Subagent", `{"purpose":"p","tasks":[{"name":"one","prompt":"ONE"},{"name":"two\u202e","prompt":"TWO"},{"name":"three","prompt":"HANG"}]}`)},
		"ONE":  {says("report one")},
		"TWO":  {{text: "part of two", err: errors.New("boom")}},
		"HANG": {says("never")},
	})
	h.model.before = func(ctx context.Context, part string) {
		if part == "" {
			return
		}
		mu.Lock()
		if atWork++; atWork == 3 {
			close(all)
		}
		most = max(most, atWork)
		mu.Unlock()
		<-all
		if part == "HANG" {
			<-ctx.Done()
		}
	}
	if stop := h.run(context.Background()); stop != agent.StopEnd {
		t.Errorf("%q", stop)
	}
	res := h.results()[0]
	for _, want := range []string{"## one (done)", "report one", "## two (not finished)", "part of two", "## three (not finished)", "its time of 2s was over"} {
		if !strings.Contains(res.Text(), want) {
			t.Errorf("no %q in %s", want, res.Text())
		}
	}
	if res.IsError || most != 3 {
		t.Errorf("error %v, %d at once", res.IsError, most)
	}
	if got := strings.Join(offered(h.model.request(t, "ONE")), " "); got != "Grep Plan ReadFile Shell" {
		t.Errorf("children have %s", got)
	}
	for _, args := range []string{`{"purpose":"p","tasks":[]}`, `{"purpose":"p","tasks":[` + strings.TrimSuffix(strings.Repeat(`{"name":"n","prompt":"p"},`, 9), ",") + `]}`} {
		if res := h.tools.Invoke(context.Background(), host.Call{Tool: "Subagent", Args: []byte(args)}); !res.IsError || !strings.Contains(res.Text(), "arguments do not fit") {
			t.Errorf("%s", res.Text())
		}
	}
}

// A01: a cancelled parent leaves no descendant running.
func TestA01NobodyIsLeft(t *testing.T) {
	started := make(chan struct{}, 3)
	h := newHouse(t, Options{}, &host.Gate{Mode: host.ModeAuto}, map[string][]answer{
		"":      {does("spawn_agent", `{"prompt":"CHILD","tools":["spawn_agent"]}`, `{"prompt":"GRAND","background":true}`)},
		"CHILD": {does("spawn_agent", `{"prompt":"GRAND"}`)},
		"GRAND": {says("never")},
	})
	h.model.before = func(ctx context.Context, part string) {
		if part == "GRAND" {
			started <- struct{}{}
			<-ctx.Done()
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-started
		<-started
		cancel()
	}()
	if stop := h.run(ctx); stop != agent.StopCancelled {
		t.Fatalf("%q", stop)
	}
	wait, done := context.WithTimeout(context.Background(), 2*time.Minute)
	defer done()
	if err := h.runs.Wait(wait, h.s); err != nil {
		t.Fatal(err)
	}
	for _, st := range h.runs.List(h.s) {
		if st.Status != agent.Cancelled {
			t.Errorf("%s is %q", st.Prompt, st.Status)
		}
	}
}

// Run with -race: 64 sub-agents at once, each with calls of its own.
func Test64SubAgents(t *testing.T) {
	var args []string
	for i := range 64 {
		args = append(args, fmt.Sprintf(`{"prompt":"LEAF %d","tools":["Read","Grep","subagent_list"]}`, i))
	}
	h := newHouse(t, Options{Runs: &agent.Runs{Limits: agent.RunLimits{Children: 64}}}, &host.Gate{Mode: host.ModeAuto}, map[string][]answer{
		"":     {does("spawn_agent", args...)},
		"LEAF": {does("Read", "{}", "{}", "{}"), does("Grep", "{}"), does("subagent_list", "{}"), says("leaf done")},
	})
	h.loop.Limits.Parallel = 64
	h.run(context.Background())
	res := h.results()
	if len(res) != 64 || len(h.ran) != 64*4 {
		t.Fatalf("%d results, %d calls", len(res), len(h.ran))
	}
	for _, r := range res {
		if r.IsError || !strings.Contains(r.Text(), "leaf done") {
			t.Fatalf("%s", r.Text())
		}
	}
	if u := h.s.Usage(); u.Input != 10*(2+64*4) {
		t.Errorf("%+v", u)
	}
}
