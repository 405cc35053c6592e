package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/elfhost/elfhost/internal/kit/quickjs"
	"github.com/elfhost/elfhost/plugins"
)

// TestMain lets the scripts run this very program as `elfhost`.
func TestMain(m *testing.M) {
	if child, ok := children[first(os.Args[1:])]; ok {
		os.Exit(child(os.Args[2:]))
	}
	testscript.Main(m, map[string]func(){
		"elfhost": func() {
			ctx, stop := interruptible()
			defer stop()
			os.Exit(run(ctx, streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}, os.Args[1:]))
		},
	})
}

// TestScripts runs testdata/script. Each script has a home of its own, no key
// in the environment, and a web server on loopback at $PAGES and an OCI
// registry at $REGISTRY.
func TestScripts(t *testing.T) {
	pages := httptest.NewServer(http.HandlerFunc(page))
	t.Cleanup(pages.Close)
	images := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(images.Close)
	cache := warmCache(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: false,
		Condition: func(name string) (bool, error) {
			if name != "javascript" {
				return false, fmt.Errorf("there is no condition %q", name)
			}
			_, err := quickjs.Engine()
			return err == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"unhex": unhex, "packed": packed, "exits": exits},
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, ".home")
			e.Setenv("ELFHOST_HOME", home)
			e.Setenv("PAGES", pages.URL)
			e.Setenv("REGISTRY", strings.TrimPrefix(images.URL, "http://"))
			for _, k := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "XAI_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "NO_COLOR"} {
				e.Setenv(k, "")
			}
			if err := os.MkdirAll(home, 0o700); err != nil {
				return err
			}
			if err := unpack(filepath.Join(e.WorkDir, "webfetch"), "webfetch"); err != nil {
				return err
			}
			return os.Symlink(cache, filepath.Join(home, "cache"))
		},
	})
}

// exits runs a program that must end with the given status.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM ARGUMENT...")
	}
	status := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		ended, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Check(err)
		}
		status = strconv.Itoa(ended.ExitCode())
	}
	if status != args[0] {
		ts.Fatalf("exit status %s, want %s", status, args[0])
	}
}

// unhex writes the bytes that a file has in hexadecimal.
func unhex(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: unhex FROM TO")
	}
	b, err := hex.DecodeString(strings.TrimSpace(ts.ReadFile(args[0])))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b, 0o644))
}

// unpack lays a bundled plugin into a folder, as an author would have it.
func unpack(dir, name string) error {
	b, err := plugins.Bundled(name)
	if err != nil {
		return err
	}
	wasm, err := b.Wasm()
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(dir, 0o755),
		os.WriteFile(filepath.Join(dir, "elf.toml"), b.Manifest, 0o644), os.WriteFile(filepath.Join(dir, "plugin.wasm"), wasm, 0o644))
}

// warmCache is one cache of compiled modules for all scripts.
func warmCache(t *testing.T) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		return t.TempDir()
	}
	dir = filepath.Join(dir, "elfhost-test")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return t.TempDir()
	}
	return dir
}

// page serves what scripts fetch.
func page(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/article":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<html><head><title>Tides</title></head><body><article><h1>Tides</h1>
<p>The sea rises and falls twice a day, because the moon pulls at it and the earth turns below.</p>
<p>Harbours keep tables of it, and those who can read them sail when the water helps.</p></article></body></html>`)
	case "/away":
		http.Redirect(w, r, "http://169.254.169.254/latest/", http.StatusFound)
	default:
		http.NotFound(w, r)
	}
}
