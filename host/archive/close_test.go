package archive

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
)

// Leaving does not wait for another process that keeps the store locked, and
// the session can be gone on with all the same.
func TestClosingWaitsForNobody(t *testing.T) {
	ctx, a := context.Background(), open(t)
	s := start(t, a, "one")
	if stop := work(t, loopOf(script{says("hello")}), s, "hi"); stop != agent.StopEnd {
		t.Fatal(stop)
	}
	db, err := sql.Open("sqlite", "file:"+a.Path)
	must(t, err)
	defer db.Close()
	other, err := db.Conn(ctx)
	must(t, err)
	_, err = other.ExecContext(ctx, "BEGIN IMMEDIATE")
	must(t, err)
	must(t, a.Close(ctx))
	_, err = other.ExecContext(ctx, "ROLLBACK")
	must(t, err)
	next := &Archive{Path: a.Path}
	defer next.Close(ctx)
	_, _, err = next.Resume(ctx, "one")
	must(t, err)
}

// A call that was interrupted by Ctrl-C while another process keeps the store
// locked is written down once the lock is gone: with a context of its own.
func TestAnInterruptedCallIsNotLost(t *testing.T) {
	ctx, a := context.Background(), open(t)
	s := start(t, a, "one")
	db, err := sql.Open("sqlite", "file:"+a.Path)
	must(t, err)
	defer db.Close()
	run, cancel := context.WithCancel(ctx)
	locked := make(chan error, 1)
	hang := newTool("Hang", host.KindExecute, func(ctx context.Context, _ host.Call) (abi.Result, error) {
		other, err := db.Conn(context.Background())
		if err == nil {
			_, err = other.ExecContext(context.Background(), "BEGIN IMMEDIATE")
		}
		cancel()
		<-ctx.Done()
		go func() {
			_, rerr := other.ExecContext(context.Background(), "ROLLBACK")
			locked <- errors.Join(err, rerr)
		}()
		return abi.Result{}, ctx.Err()
	})
	for range loopOf(script{does(call("a", "Hang", `{}`)), says("done")}, hang).Run(run, s, abi.TextBlock("go")) {
	}
	must(t, <-locked)
	tr, err := a.Load(ctx, "one")
	must(t, err)
	last := tr.Records[len(tr.Records)-1]
	if last.Kind != agent.RecordResult || last.Outcome != agent.Unknown {
		t.Errorf("the last record is %s, %s", last.Kind, last.Outcome)
	}
}
