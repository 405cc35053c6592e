package meter

import (
	"context"
	"errors"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// Why a guest was stopped. The error of the call wraps one of them, or
// [context.DeadlineExceeded], or the cause of the context's cancellation.
var (
	ErrFuel  = errors.New("the call used up its fuel")
	ErrDepth = errors.New("the calls are nested too deeply")
	// ErrUnarmed: a metered guest ran without a Budget in its context.
	ErrUnarmed = errors.New("a metered guest was called without a budget")
)

// Limits bound one call.
type Limits struct {
	Deadline time.Time // beside the context's; [Budget.Extend] moves it. Zero: none
	Fuel     int64     // units; zero: only the deadline and the context end the call
	Depth    int       // frame slots (parameters, locals and 16 for each frame) of recursive functions; zero: DefaultDepth
}

// DefaultDepth is also in force while a module is instantiated.
const DefaultDepth = 1 << 20

// A slice is the fuel between two ticks. It begins small and follows the
// measured speed, so that a tick comes about every half millisecond whatever
// the guest does. The sum that is charged does not depend on it.
const (
	firstSlice = 1 << 14
	maxSlice   = 1 << 20
	slow, fast = 700 * time.Microsecond, 250 * time.Microsecond
)

// Budget is the state of one call. It is used by one goroutine.
type Budget struct {
	Ticks int // so far

	limits   Limits
	deadline time.Time // can be moved
	hard     time.Time // the context's
	slice    int64
	last     time.Time // of the latest tick

	module  api.Module // whose gauge is filled
	gauge   api.MutableGlobal
	granted int64 // to this module
	before  int64 // spent by others
}

type budgetKey struct{}

// Start gives a context that carries the budget of one call, bounded by the
// deadline and the cancellation of ctx.
func Start(ctx context.Context, l Limits) (context.Context, *Budget) {
	if l.Depth <= 0 {
		l.Depth = DefaultDepth
	}
	l.Depth = min(l.Depth, deep)
	b := &Budget{limits: l, slice: firstSlice, deadline: l.Deadline}
	b.hard, _ = ctx.Deadline()
	return context.WithValue(ctx, budgetKey{}, b), b
}

// From gives the budget that ctx carries, nil when there is none: for host
// functions that move its deadline or look at what was spent.
func From(ctx context.Context) *Budget {
	b, _ := ctx.Value(budgetKey{}).(*Budget)
	return b
}

// Arm binds the budget to an instance before it is called. What the instance
// counted earlier is dropped; what this budget spent elsewhere stays. An
// instance that is being instantiated needs no Arm.
func (b *Budget) Arm(mod api.Module) error {
	if err := b.bind(mod); err != nil {
		return err
	}
	b.gauge.Set(uint64(deep - int64(b.limits.Depth)))
	b.grant()
	b.last = time.Now()
	return nil
}

// bind turns to the gauge of mod and takes back what the module before has left.
func (b *Budget) bind(mod api.Module) error {
	g, ok := mod.ExportedGlobal(GaugeExport).(api.MutableGlobal)
	if !ok {
		return errors.New("the module is not metered")
	}
	b.before = b.Spent()
	if b.gauge != nil {
		b.gauge.Set(b.gauge.Get() & (1<<fuelShift - 1))
	}
	b.module, b.gauge, b.granted = mod, g, 0
	return nil
}

// grant adds a slice, or what is left of the total; false when nothing is.
func (b *Budget) grant() bool {
	n := b.slice
	if b.limits.Fuel > 0 {
		n = min(n, b.limits.Fuel-b.before-b.granted)
	}
	if n <= 0 {
		return false
	}
	b.granted += n
	b.gauge.Set(b.gauge.Get() + uint64(n)<<fuelShift)
	return true
}

func (b *Budget) left() int64 { return int64(b.gauge.Get()) >> fuelShift }

// Spent is the fuel used so far. It exceeds Limits.Fuel by at most the charge
// that ended the call.
func (b *Budget) Spent() int64 {
	if b.gauge == nil {
		return b.before
	}
	return b.before + b.granted - b.left()
}

// Extend moves Limits.Deadline, for time that does not count: a person was
// asked. The context's own deadline stays. Call it from a host function.
func (b *Budget) Extend(d time.Duration) {
	if !b.deadline.IsZero() {
		b.deadline = b.deadline.Add(d)
	}
}

// tick runs inside the guest's call. A panic with an error unwinds the guest
// and becomes the error of the call.
func tick(ctx context.Context, mod api.Module, _ []uint64) {
	b := From(ctx)
	if b == nil {
		panic(ErrUnarmed)
	}
	if b.module != mod { // it is being instantiated, or was called by another module
		if err := b.bind(mod); err != nil {
			panic(err)
		}
	}
	b.Ticks++
	if ctx.Err() != nil {
		panic(context.Cause(ctx))
	}
	now := time.Now()
	// The context's timer may be late while every processor runs a guest.
	if over(now, b.deadline) || over(now, b.hard) {
		panic(context.DeadlineExceeded)
	}
	if b.gauge.Get()&deep != 0 {
		panic(ErrDepth)
	}
	b.adapt(now)
	for b.left() < 0 {
		if !b.grant() {
			panic(ErrFuel)
		}
	}
}

func over(now, deadline time.Time) bool { return !deadline.IsZero() && now.After(deadline) }

// adapt follows the guest's speed.
func (b *Budget) adapt(now time.Time) {
	switch d := now.Sub(b.last); {
	case d > slow:
		b.slice = max(b.slice/2, firstSlice/16)
	case d < fast:
		b.slice = min(b.slice*2, maxSlice)
	}
	b.last = now
}

// Instantiate adds the host module that metered modules import.
func Instantiate(ctx context.Context, rt wazero.Runtime) error {
	_, err := rt.NewHostModuleBuilder(TickModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(tick), nil, nil).Export(TickName).Instantiate(ctx)
	return err
}
