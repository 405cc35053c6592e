package kit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

// How Watch looks: how often, and how long a folder must have been quiet, for
// editors write a file in several steps.
const (
	glance = 50 * time.Millisecond
	quiet  = 40 * time.Millisecond
)

// maxWatched bounds the files of a project.
const maxWatched = 20_000

// Watch calls changed once, and then whenever a source of the project in dir
// changed, until ctx ends or changed fails. A change in the middle of a call
// cancels its context: what comes of it is dropped, and changed is called
// again. Watch looks at times and sizes: that works on every platform and file
// system, and a project is small.
func Watch(ctx context.Context, dir string, changed func(context.Context) error) error {
	last := ""
	r := &round{}
	defer func() { r.stop() }()
	for {
		now, err := stamp(dir)
		if err != nil {
			return err
		}
		if now != last {
			if err := sleep(ctx, quiet); err != nil {
				return err
			}
			if again, err := stamp(dir); err != nil || again != now {
				continue // somebody is still writing
			}
			last = now
			r.stop()
			r = begin(ctx, changed)
		}
		select {
		case err := <-r.done:
			r.cancel()
			if r = (&round{}); err != nil {
				return err
			}
		case <-time.After(glance):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// round is a call that is on its way. The zero value is none.
type round struct {
	cancel context.CancelFunc
	done   chan error
}

func begin(ctx context.Context, f func(context.Context) error) *round {
	ctx, cancel := context.WithCancel(ctx)
	r := &round{cancel, make(chan error, 1)}
	go func() { r.done <- f(ctx) }()
	return r
}

func (r *round) stop() {
	if r.done != nil {
		r.cancel()
		<-r.done
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// stamp is another text when a source is another.
func stamp(dir string) (string, error) {
	h := sha256.New()
	n := 0
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && p == dir:
			return err
		case err != nil:
			return nil // it went away meanwhile
		case e.IsDir() && p != dir && (strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules"):
			return fs.SkipDir
		case e.IsDir() || strings.HasPrefix(e.Name(), Module) || strings.HasSuffix(e.Name(), "~"):
			return nil
		}
		if n++; n > maxWatched {
			return fmt.Errorf("%q holds more than %d files: that is no plugin's folder", dir, maxWatched)
		}
		st, err := e.Info()
		if err != nil {
			return nil
		}
		fmt.Fprintf(h, "%s %d %d\n", p, st.Size(), st.ModTime().UnixNano())
		return nil
	})
	return string(h.Sum(nil)), err
}
