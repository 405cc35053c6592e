package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/plugintest"
	"github.com/elfhost/elfhost/pdk/pdktest"
)

const public = "net.http public GET,HEAD"

// inPublic makes every name lead to a public address, and every public address
// to the server: what it answers seems to come from the internet.
func inPublic(p *plugintest.Plugin, srv *httptest.Server) {
	p.Loader.HTTP.Resolve = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
	}
	p.Loader.HTTP.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, srv.Listener.Addr().String())
	}
}

func TestInSandbox(t *testing.T) {
	p := plugintest.Load(t, ".")
	var hits int
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits++
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "http://127.0.0.1/secret", http.StatusFound)
		case "/long":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<title>Long</title><article>"+strings.Repeat("<p>A fact, and another one, in a paragraph of its own.</p>", 200))
		case "/p":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, strings.Repeat("<p>", 1_600_000)+"the text")
		case "/deep":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, strings.Repeat("<div>", 100_000)+"the text")
		case "/bomb":
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			for range 50 {
				_, _ = z.Write([]byte(strings.Repeat("x", 1<<20)))
			}
		default:
			fmt.Fprint(w, "<title>Hello</title><p>Some <b>bold</b> text.")
		}
	}))
	defer srv.Close()
	inPublic(p, srv)

	t.Run("page", func(t *testing.T) {
		r, receipt, err := p.Call("WebFetch", args{URL: "http://example.org/"}, public)
		if err != nil || r.IsError || !strings.Contains(r.Text(), "Title: Hello\nURL: http://example.org/\n") || !strings.Contains(r.Text(), "Some **bold** text.") {
			t.Fatalf("%+v, %v", r, err)
		}
		if receipt.BytesIn == 0 || len(receipt.Hosts) != 1 || receipt.HostCalls["elf:net.http"] != 1 {
			t.Errorf("receipt %+v", receipt)
		}
	})
	t.Run("summary", func(t *testing.T) {
		p.Loader.Model = func(_ context.Context, _ policy.Rights, q sandbox.ModelRequest) (sandbox.ModelReply, error) {
			text := ""
			for _, c := range q.Messages[0].Content {
				text += c.Text
			}
			if !strings.Contains(text, "Answer from the page: How many?") || !strings.Contains(text, "A fact, and another one") {
				t.Errorf("the model was asked %.300q", text)
			}
			return sandbox.ModelReply{Text: "Two hundred.", Model: "small-1"}, nil
		}
		defer func() { p.Loader.Model = nil }()
		r, _, err := p.Call("WebFetch", args{URL: "http://example.org/long", Prompt: "How many?"}, public, "model 100k tokens")
		if err != nil || !strings.Contains(r.Text(), "\nTwo hundred.\n") {
			t.Errorf("%s, %v", r.Text(), err)
		}
	})
	t.Run("no model", func(t *testing.T) {
		r, _, err := p.Call("WebFetch", args{URL: "http://example.org/long"}, public, "model 100k tokens")
		if err != nil || r.IsError || strings.Count(r.Text(), "A fact") != 200 || !strings.Contains(r.Text(), "No background model") {
			t.Errorf("%.300s, %v", r.Text(), err)
		}
	})
	t.Run("WF01", func(t *testing.T) {
		for _, u := range []string{
			"http://127.0.0.1/", "http://10.0.0.1/", "http://172.16.0.1/", "http://192.168.1.1/", "http://169.254.169.254/latest/",
			"http://100.64.0.1/", "http://0.0.0.0/", "http://0.1.2.3/", "http://198.18.0.1/", "http://192.0.0.8/", "http://240.0.0.1/",
			"http://255.255.255.255/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://localhost/", "http://2130706433/",
		} {
			before := hits
			r, receipt, err := p.Call("WebFetch", args{URL: u}, public)
			if err != nil || !r.IsError || hits != before {
				t.Errorf("%s: %s, %v", u, r.Text(), err)
			}
			if !strings.Contains(r.Text(), u[:12]) || len(receipt.Hosts) > 0 {
				t.Errorf("%s: %s, %+v", u, r.Text(), receipt.Hosts)
			}
		}
	})
	t.Run("W04", func(t *testing.T) {
		r, _, err := p.Call("WebFetch", args{URL: "http://example.org/away"}, public)
		if err != nil || !r.IsError || !strings.Contains(r.Text(), "did not allow") {
			t.Errorf("%s, %v", r.Text(), err)
		}
	})
	t.Run("W06", func(t *testing.T) {
		r, _, err := p.Call("WebFetch", args{URL: "http://example.org/bomb", Raw: true}, public)
		if err != nil || r.IsError || !strings.Contains(r.Text(), "(truncated)") || len(r.Text()) > maxBody+1000 {
			t.Errorf("%d bytes, %.300s, %v", len(r.Text()), r.Text(), err)
		}
	})
	t.Run("WF02 WF03", func(t *testing.T) {
		for _, path := range []string{"/p", "/deep"} {
			start := time.Now()
			r, receipt, err := p.Call("WebFetch", args{URL: "http://example.org" + path}, public)
			if err != nil || r.IsError || !strings.Contains(r.Text(), "the text") {
				t.Errorf("%s: %.300s, %v", path, r.Text(), err)
			}
			t.Logf("%s: %v, %d MiB", path, time.Since(start), receipt.Memory>>20)
		}
	})
	t.Run("not granted", func(t *testing.T) {
		if r, _, err := p.Call("WebFetch", args{URL: "http://example.org/"}); err != nil || !r.IsError || !strings.Contains(r.Text(), "did not allow") {
			t.Errorf("%s, %v", r.Text(), err)
		}
	})
	t.Run("large article", func(t *testing.T) {
		page := longArticle(5 << 20)
		big := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, page)
		}))
		defer big.Close()
		inPublic(p, big)
		r, receipt, err := p.Call("WebFetch", args{URL: "http://example.net/"}, public)
		if err != nil || r.IsError || !strings.Contains(r.Text(), "The page is too large to find its article") {
			t.Errorf("%.300s, %v", r.Text(), err)
		}
		t.Logf("5 MB: %v, %d MiB", receipt.Wall, receipt.Memory>>20)
	})
}

// longArticle is an article of n bytes with the marks of a real one.
func longArticle(n int) string {
	var b strings.Builder
	b.WriteString("<html><head><title>Big</title></head><body><article>")
	for i := 0; b.Len() < n; i++ {
		if i%8 == 0 {
			fmt.Fprintf(&b, "<h2>Part %d of the story</h2>\n", i/8)
		}
		fmt.Fprintf(&b, "<p>Paragraph %d tells <a href='/x/%d'>what happened</a>, in %s.</p>\n", i, i, strings.Repeat("many words of ordinary length, ", 10))
	}
	b.WriteString("</article></body></html>")
	return b.String()
}

// BenchmarkExtraction compares the sandbox with the same tool run natively, on
// a page of 256 KB, short enough for the machine to leave a run alone. The goal
// is a ratio of at most 8.
func BenchmarkExtraction(b *testing.B) {
	page := []byte(longArticle(256 << 10))
	p := plugintest.Load(b, ".")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write(page)
	}))
	defer srv.Close()
	in := args{URL: srv.URL}
	tool := pdktest.New(b)
	run := func(best *time.Duration, call func() (abi.Result, error)) {
		start := time.Now()
		r, err := call()
		*best = min(*best, time.Since(start))
		if err = errors.Join(err, failed(r)); err != nil {
			b.Fatal(err)
		}
	}
	sandboxed := func() (abi.Result, error) {
		r, _, err := p.Call("WebFetch", in, "net.http "+srv.URL+" GET")
		return r, err
	}
	native, guest := time.Duration(1<<62), time.Duration(1<<62)
	run(new(time.Duration), sandboxed) // compiled now
	for b.Loop() {
		run(&native, func() (abi.Result, error) { return tool.Call("WebFetch", in), nil })
		run(&guest, sandboxed)
	}
	ratio := float64(guest) / float64(native)
	b.ReportMetric(ratio, "ratio")
	b.ReportMetric(float64(guest.Microseconds())/1e3, "sandbox-ms")
	verdict := "ok"
	if ratio > 8 {
		verdict = "short"
	}
	fmt.Fprintf(os.Stdout, "figure\twebfetch extraction per MB, sandbox to native\t%.2f\t8\t%s\n", ratio, verdict)
}

func failed(r abi.Result) error {
	if r.IsError {
		return errors.New(r.Text())
	}
	return nil
}
