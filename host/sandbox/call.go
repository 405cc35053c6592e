package sandbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/sandbox/meter"
	"github.com/elfhost/elfhost/host/sandbox/wasi"
)

// call is the state of one entry into a guest: what it may still do, what it
// did, and what is pending for it. One goroutine runs it; mu guards what the
// brokers note from theirs.
type call struct {
	plugin *Plugin
	from   host.Call
	outer  *call // the call of the plugin that called this tool
	limits abi.Limits
	rights policy.Rights
	watch  *stopwatch
	unhalt func() bool
	sys    *wasi.System
	logs   *logs
	budget *reach.Budget // of the network
	fuel   *meter.Budget
	tape   *tape // nil: neither recorded nor replayed
	early  bool  // initialisation or description: nobody's rights
	// foreign is the guest's side of another format, once it was needed.
	foreign *Guest
	linked  map[string]*instance // of linked modules, as they were needed
	broken  bool                 // one of them trapped

	hostCalls int
	outside   time.Duration // spent in host functions, less what was waited
	cpu       time.Duration // of the thread when the call began; 0: not known
	waited    time.Duration // that the deadline was moved by
	pending   []byte
	unread    bool
	lastErr   string
	inside    bool // it holds its places in the queues
	locked    bool // its goroutine stays on one thread
	reentered bool // a tool it called came back to its own plugin

	mu      sync.Mutex
	receipt abi.Receipt
}

// callContext carries the call to the host functions without a lookup through
// a chain of contexts.
type callContext struct {
	context.Context
	call *call
}

type callKey struct{}

func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return c.call
	}
	return c.Context.Value(key)
}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// prepareTime is the least that initialisation and description have: they run
// once, in an interpreter, perhaps on a busy machine.
const prepareTime = 10 * time.Second

// begin makes the state of a call and its context. end it.
func (p *Plugin) begin(ctx context.Context, from host.Call, early bool) (context.Context, *call) {
	c := &call{plugin: p, from: from, outer: callOf(ctx), limits: p.limits, early: early}
	if early {
		c.limits.Time = max(c.limits.Time, prepareTime)
	}
	c.receipt = abi.Receipt{Call: from.ID, Tool: from.Tool, Plugin: p.pkg.Manifest.Name, Digest: p.digest()}
	c.logs = newLogs(p.loader.Log, LogLine{Plugin: p.pkg.Manifest.Name, Tool: from.Tool, Call: from.ID},
		c.limits.LogLines, c.limits.LogLine)
	c.budget = &reach.Budget{MaxRequests: int64(c.limits.Requests), MaxIn: c.limits.BytesIn, MaxOut: c.limits.BytesOut}
	c.sys = c.system()
	ctx, c.watch = startWatch(ctx, c.limits.Time, from.Waited)
	c.unhalt = context.AfterFunc(p.halted, func() { c.watch.cancel(ErrClosed) })
	ctx, c.fuel = meter.Start(ctx, meter.Limits{Fuel: c.limits.Fuel, Deadline: c.watch.start.Add(c.limits.Time)})
	return &callContext{ctx, c}, c
}

// system makes the call's side of WASI; without rights at initialisation.
func (c *call) system() *wasi.System { return wasi.New(c.wasiConfig()) }

func (c *call) wasiConfig() wasi.Config {
	conf := wasi.Config{Stdout: &c.logs.out, Stderr: &c.logs.err}
	if !c.early {
		c.rights = c.from.Rights
		c.rights.Note = c.note
		conf.Rights = c.rights
		conf.FineClock = c.rights.Grants.Check(policy.Use{Cap: abi.ClockFine}) == nil
		if tree := c.plugin.loader.Tree; tree != nil {
			conf.Tree = tree(c.from.Caller)
		}
	}
	return conf
}

// enter waits for a place among the calls of the plugin and of all plugins.
func (c *call) enter(ctx context.Context) error {
	if err := c.plugin.slots.enter(ctx); err != nil {
		return err
	}
	if err := c.plugin.loader.queue().enter(ctx); err != nil {
		c.plugin.slots.leave()
		return err
	}
	c.inside = true
	return nil
}

func (c *call) leave() {
	if c.inside {
		c.inside = false
		c.plugin.loader.queue().leave()
		c.plugin.slots.leave()
	}
}

// end closes what the guest left open and completes the receipt, but for its
// pages.
func (c *call) end(err error) {
	wall := time.Since(c.watch.start)
	c.watch.stop()
	c.unhalt()
	c.sys.Close()
	c.logs.flush()
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.receipt
	r.Waited = c.from.Waited()
	r.Wall = wall - r.Waited
	r.CPU = max(r.Wall-c.outside, 0) // where the system does not tell: the guest never waits
	if now, ok := threadTime(); ok && c.cpu > 0 {
		r.CPU = now - c.cpu
	}
	r.Fuel = c.fuel.Spent()
	_, r.BytesIn, r.BytesOut = c.budget.Spent()
	if c.logs.dropped > 0 {
		c.hit(limitLog)
	}
	var limit *LimitError
	if errors.As(err, &limit) {
		c.hit(limit.Limit)
	}
	if err != nil {
		r.Error = err.Error()
	}
}

// hit notes a limit once. mu is held, or the call is over.
func (c *call) hit(limit string) {
	if !slices.Contains(c.receipt.Limits, limit) {
		c.receipt.Limits = append(c.receipt.Limits, limit)
	}
}

// maxNotes bounds each list of a receipt: a guest may open ten thousand files.
const maxNotes = 256

// note keeps each decision about this call for the receipt, and passes it on.
func (c *call) note(u policy.Use, err error) {
	c.mu.Lock()
	r := &c.receipt
	switch {
	case err != nil:
		addNote(&r.Denied, fmt.Sprintf("%s %s", u.Cap, strings.ReplaceAll(u.Target, "\x00", " ")))
	case u.Cap == abi.FSRead:
		addNote(&r.Files, "read "+u.Target)
	case u.Cap == abi.FSWrite:
		addNote(&r.Files, "write "+u.Target)
	}
	c.mu.Unlock()
	if c.from.Rights.Note != nil {
		c.from.Rights.Note(u, err)
	}
}

func addNote(list *[]string, s string) {
	if len(*list) < maxNotes && !slices.Contains(*list, s) {
		*list = append(*list, s)
	}
}

// HostError is a bug of ours in a host function. The guest was ended.
type HostError struct {
	Func  string
	Value any
	Stack []byte
}

func (e *HostError) Error() string {
	return fmt.Sprintf("host function %s failed: %v", e.Func, e.Value)
}

// host runs a host function for the guest: counted, recorded, and stopped at
// the limits. types are those of the parameters on the stack.
func (c *call) host(name string, waits bool, mod api.Module, stack []uint64, types []api.ValueType, f func(m wasi.Memory)) {
	c.counted(name, waits, func() {
		if c.tape == nil {
			f(wasi.MemoryOf(mod, nil))
		} else {
			c.tape.run(name, mod, stack, types, f)
		}
	})
}

// counted runs a host function within the limits of the call. waits says that it
// may wait for something, which only a timer can end.
func (c *call) counted(name string, waits bool, f func()) {
	defer contain(name)
	if c.hostCalls++; c.limits.HostCalls > 0 && c.hostCalls > c.limits.HostCalls {
		panic(&LimitError{limitHostCalls, fmt.Sprint(c.limits.HostCalls)})
	}
	if c.receipt.HostCalls == nil {
		c.receipt.HostCalls = map[string]int{}
	}
	c.receipt.HostCalls[name]++
	if waits {
		c.watch.arm()
	}
	begin := time.Now()
	f()
	c.outside += time.Since(begin)
	c.check()
}

// check ends a guest whose time is over or whose caller has gone, and gives
// back to the others what a person took.
func (c *call) check() {
	if more := c.from.Waited() - c.waited; more > 0 {
		c.waited += more
		c.outside -= more
		c.fuel.Extend(more)
	}
	c.watch.expired()
	if err := c.watch.err(); err != nil {
		panic(err)
	}
}

// contain tells the ends that are meant from bugs. The runtime recovers what
// is thrown here and unwinds the guest.
func contain(name string) {
	switch r := recover().(type) {
	case nil:
	case *LimitError, *sys.ExitError, *HostError, *stopped, *Difference, *Ended:
		panic(r)
	default:
		panic(&HostError{name, r, debug.Stack()})
	}
}

// stopped ends a guest because its context is over.
type stopped struct{ error }

func (s *stopped) Unwrap() error { return s.error }
