// Package serve is the web server of a hub: its files, a search, uploads by
// publishers who have a token, and a few plain pages for people.
//
// The files need no server of ours: any web server will do, and clients trust
// none. What this one adds is for people and for publishers.
package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/store"
	"github.com/elfhost/elfhost/skillhub/hub"
)

// Options say what is served.
type Options struct {
	// Author keeps the hub. Without its keys the hub is served, and nothing can
	// be uploaded.
	Author *hub.Author
	// Tokens is the file with publishers' tokens; "" takes no uploads.
	Tokens string
	// URL is how clients reach the hub, for the pages; "": as they say it.
	URL string
	// Renew signs the hub anew twice a day, with the keys at hand.
	Renew bool
	Log   func(text string) // nil: nothing is logged; safe for concurrent use
}

// Server serves one hub. Close it.
type Server struct {
	o     Options
	root  *os.Root
	set   *hub.Set
	hub   hub.Offer
	state string // a folder of its own
	mux   *http.ServeMux

	installs installs
	uploads  chan struct{} // a place for each that may run at once
}

// maxUploads may run at once.
const maxUploads = 2

// freshness is how old what the pages show may be.
const freshness = 5 * time.Second

// New readies a server. The hub in the folder is verified; nothing listens yet.
func New(ctx context.Context, o Options) (_ *Server, err error) {
	s := &Server{o: o, uploads: make(chan struct{}, maxUploads)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	dir, err := filepath.Abs(o.Author.Dir)
	if err != nil {
		return nil, err
	}
	if s.root, err = os.OpenRoot(dir); err != nil {
		return nil, err
	}
	if s.state, err = os.MkdirTemp("", "elfhost-hub-"); err != nil {
		return nil, err
	}
	local := hub.Options{
		State: filepath.Join(s.state, "hubs"), MaxAge: freshness, Now: o.Author.Now,
		Rights:  func(policy.Grant) (policy.Rights, error) { return policy.Rights{}, nil },
		Offline: "a hub's server reads its own folder", // and nothing else
		Index: func(ctx context.Context) (*store.Index, error) {
			return store.OpenIndex(ctx, filepath.Join(s.state, "index.db"))
		},
	}
	if s.hub, err = hub.Look(ctx, local, dir, ""); err != nil {
		return nil, err
	}
	remote, err := hub.Pin(ctx, local, "hub", dir, s.hub)
	if err != nil {
		return nil, err
	}
	s.set = hub.NewSet(local, []hub.Remote{remote})
	if err := s.installs.load(o.Author); err != nil {
		return nil, err
	}
	s.routes()
	return s, nil
}

// Close removes what the server kept for itself, and writes the counts.
func (s *Server) Close() error {
	var errs []error
	if s.set != nil {
		errs = append(errs, s.installs.save(s.o.Author))
	}
	if s.root != nil {
		errs = append(errs, s.root.Close())
	}
	if s.state != "" {
		errs = append(errs, os.RemoveAll(s.state))
	}
	return errors.Join(errs...)
}

// logged lets net/http complain where the server does.
type logged struct{ s *Server }

func (l logged) Write(b []byte) (int, error) {
	l.s.log("%s", bytes.TrimSpace(b))
	return len(b), nil
}

func (s *Server) log(format string, args ...any) {
	if s.o.Log != nil {
		s.o.Log(fmt.Sprintf(format, args...))
	}
}

func (s *Server) routes() {
	s.mux = http.NewServeMux()
	s.mux.HandleFunc("GET /metadata/{file}", s.file)
	s.mux.HandleFunc("GET /packages/{name}/{file}", s.file)
	s.mux.HandleFunc("GET /index/{file}", s.file)
	s.mux.HandleFunc("GET /blobs/sha256/{part}/{file}", s.file)
	s.mux.HandleFunc("GET /api/v1/search", s.apiSearch)
	s.mux.HandleFunc("GET /api/v1/packages/{name}", s.apiPackage)
	s.mux.HandleFunc("POST /api/v1/packages", s.upload)
	s.mux.HandleFunc("GET /{$}", s.searchPage)
	s.mux.HandleFunc("GET /p/{name}", s.packagePage)
	s.mux.HandleFunc("GET /style.css", s.style)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	s.mux.ServeHTTP(w, r)
}

// Times of a connection. Uploads have their own.
const (
	headerTime = 10 * time.Second
	readTime   = 30 * time.Second
	writeTime  = 10 * time.Minute
	idleTime   = 2 * time.Minute
	stopTime   = 10 * time.Second
	saveEvery  = time.Minute
	renewEvery = 12 * time.Hour
)

// Serve answers on a listener until the context ends; then requests under way
// have some seconds to end.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime, MaxHeaderBytes: 32 << 10,
		ErrorLog: log.New(logged{s}, "", 0),
	}
	var jobs sync.WaitGroup
	inner, cancel := context.WithCancel(ctx)
	jobs.Go(func() { s.every(inner, saveEvery, func() error { return s.installs.save(s.o.Author) }) })
	if s.o.Renew {
		jobs.Go(func() { s.renewals(inner) })
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		stop, done := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		if err = srv.Shutdown(stop); err != nil {
			err = errors.Join(err, srv.Close())
		}
		done()
	}
	cancel()
	jobs.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// every does a job from time to time; its failures are logged.
func (s *Server) every(ctx context.Context, d time.Duration, job func() error) {
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if err := job(); err != nil {
				s.log("%v", err)
			}
		}
	}
}

func (s *Server) renewals(ctx context.Context) {
	renew := func() error {
		_, err := s.o.Author.Sign(ctx)
		return err
	}
	if err := renew(); err != nil {
		s.log("renewing the hub: %v", err)
	}
	s.every(ctx, renewEvery, renew)
}
