package reach

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach/secret"
)

func TestNET01HostNotListed(t *testing.T) {
	w := newWeb(t)
	w.names["evil.test"] = []string{public}
	var noted []error
	r := give(t, "net.http https://api.good.test")
	r.Note = func(_ policy.Use, err error) { noted = append(noted, err) }
	if _, err := get(w, r, "http://evil.test/"); !errors.Is(err, denied) {
		t.Error(err)
	}
	if len(w.lookups) != 0 || len(w.dialled) != 0 {
		t.Errorf("looked up %v, dialled %v", w.lookups, w.dialled)
	}
	if len(noted) != 1 || !errors.Is(noted[0], denied) {
		t.Errorf("noted %v", noted)
	}
}

func TestNET02SuffixConfusion(t *testing.T) {
	w := newWeb(t)
	r := give(t, "net.http http://*.good.test")
	w.serve(t, "a.good.test", public, "80", text("ok"))
	if got, err := get(w, r, "http://a.good.test/"); got != "ok" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, host := range []string{"evilgood.test", "good.test.evil.test", "good.test@evil.test", "good.test#@evil.test", "good.test%00.evil.test"} {
		w.names[host] = []string{public}
		if got, err := get(w, r, "http://"+host+"/"); err == nil {
			t.Errorf("%s: %q", host, got)
		}
	}
	if len(w.dialled) != 1 {
		t.Errorf("dialled %v", w.dialled)
	}
}

var private4 = []string{
	"127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "0.1.2.3",
	"198.18.0.1", "192.0.0.8", "240.0.0.1", "255.255.255.255",
}

var private6 = []string{
	"::1", "::", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::", "2002:7f00:1::", "fec0::1", "fd00:ec2::254",
}

func TestNET04PrivateLiteral(t *testing.T) { refusesAddresses(t, private4) }
func TestNET05IPv6Embed(t *testing.T) {
	refusesAddresses(t, private6)
	w := newWeb(t)
	if _, err := get(w, give(t, "net.http public"), "http://[fe80::1%25lo]/"); err == nil {
		t.Error("a zone")
	}
}

func TestWF01SSRFSet(t *testing.T) {
	refusesAddresses(t, append(append([]string{}, private4...), private6...))
}

// refusesAddresses tries them as the URL's host, and as what an allowed name
// resolves to, alone and beside a public one; a grant that names one allows it.
func refusesAddresses(t *testing.T, addrs []string) {
	t.Helper()
	for _, a := range addrs {
		w := newWeb(t)
		host := a
		if strings.Contains(a, ":") {
			host = "[" + a + "]"
		}
		r := give(t, "net.http public", "net.http http://name.test")
		for _, u := range []string{"http://" + host + "/", "http://" + host + ":8080/"} {
			if _, err := get(w, r, u); !errors.Is(err, denied) {
				t.Errorf("%s: %v", u, err)
			}
		}
		for _, answer := range []string{a, public + "," + a} {
			w.names["name.test"] = []string{answer}
			if _, err := get(w, r, "http://name.test/"); !errors.Is(err, denied) {
				t.Errorf("a name that resolves to %s: %v", answer, err)
			}
		}
		if len(w.dialled) != 0 {
			t.Errorf("%s: dialled %v", a, w.dialled)
		}
	}
	w := newWeb(t)
	w.serve(t, "name.test", "10.1.2.3", "80", text("inside"))
	if got, err := get(w, give(t, "net.http http://name.test", "net.http http://10.1.2.3"), "http://name.test/"); got != "inside" || err != nil {
		t.Errorf("named by a grant: %q, %v", got, err)
	}
}

func TestNET06NumericForms(t *testing.T) {
	w := newWeb(t)
	w.Resolve = nil
	for _, h := range []string{"2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0", "2852039166"} {
		if _, err := get(w, give(t, "net.http public"), "http://"+h+"/"); err == nil {
			t.Errorf("%s was reached", h)
		}
	}
	if len(w.dialled) != 0 {
		t.Errorf("dialled %v", w.dialled)
	}
}

func TestNET07LocalhostNames(t *testing.T) {
	own, _ := os.Hostname()
	for _, h := range []string{"localhost", "LOCALHOST", "localhost.", "foo.localhost", "ip6-localhost", own} {
		w := newWeb(t)
		for _, n := range []string{"localhost", "foo.localhost", "ip6-localhost", strings.ToLower(own)} {
			w.names[n] = []string{"127.0.0.1"}
		}
		if _, err := get(w, give(t, "net.http public"), "http://"+h+"/"); err == nil {
			t.Errorf("%s was reached", h)
		}
		if len(w.dialled) != 0 {
			t.Errorf("%s: dialled %v", h, w.dialled)
		}
	}
}

func TestNET08DNSRebind(t *testing.T) {
	w := newWeb(t)
	hits := 0
	local := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits++ }))
	defer local.Close()
	var host, sni, proto string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, sni, proto = r.Host, r.TLS.ServerName, r.Proto
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	w.trust(s)
	_, port, _ := net.SplitHostPort(local.Listener.Addr().String())
	w.names["example.com"] = []string{public, "127.0.0.1"}
	w.routes[net.JoinHostPort(public, port)] = s.Listener.Addr().String()
	w.routes[net.JoinHostPort("127.0.0.1", port)] = local.Listener.Addr().String()
	r := give(t, "net.http https://example.com:"+port)
	if _, err := get(w, r, "https://example.com:"+port+"/"); err != nil {
		t.Fatal(err)
	}
	if host != "example.com:"+port || sni != "example.com" || proto != "HTTP/2.0" {
		t.Errorf("host %q, sni %q, %s", host, sni, proto)
	}
	if len(w.lookups) != 1 || len(w.dialled) != 1 || w.dialled[0] != net.JoinHostPort(public, port) {
		t.Errorf("looked up %v, dialled %v", w.lookups, w.dialled)
	}
	// The second look-up gives loopback: the pooled connection must not help it.
	if _, err := get(w, r, "https://example.com:"+port+"/"); !errors.Is(err, denied) {
		t.Error(err)
	}
	if hits != 0 {
		t.Errorf("%d hits", hits)
	}
}

func TestPoolKeepsAddressesApart(t *testing.T) {
	w := newWeb(t)
	w.serve(t, "n.test", "10.0.0.1", "80", text("inside"))
	both := give(t, "net.http http://n.test", "net.http http://10.0.0.1")
	if got, err := get(w, both, "http://n.test/"); got != "inside" || err != nil {
		t.Fatal(got, err)
	}
	w.names["n.test"] = []string{public}
	w.routes[public+":80"] = httptest.NewServer(text("outside")).Listener.Addr().String()
	if got, err := get(w, give(t, "net.http public"), "http://n.test/"); got != "outside" || err != nil {
		t.Error(got, err)
	}
}

func TestNET10RedirectPrivate(t *testing.T) {
	for _, to := range []string{"http://169.254.169.254/latest/", "http://127.0.0.1/secret", "//10.0.0.1/", "http://inner.test/", "file:///etc/passwd", "gopher://x/"} {
		w := newWeb(t)
		w.names["inner.test"] = []string{"192.168.0.1"}
		w.serve(t, "good.test", public, "80", http.RedirectHandler(to, http.StatusFound))
		if _, err := get(w, give(t, "net.http public"), "http://good.test/"); err == nil || !errors.Is(err, denied) && !errors.Is(err, abi.ErrInvalid) {
			t.Errorf("-> %s: %v", to, err)
		}
		if len(w.dialled) != 1 {
			t.Errorf("-> %s: dialled %v", to, w.dialled)
		}
	}
}

func TestW04FetchSSRFRedirect(t *testing.T) {
	TestNET10RedirectPrivate(t)
	TestNET08DNSRebind(t)
}

func TestNET12RedirectSecret(t *testing.T) {
	w := newWeb(t)
	w.Secrets = &secret.Vault{Store: memory{"token": "s3cr3t-value-1"}}
	var seen []string
	log := func(to string) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			seen = append(seen, r.Host+" "+r.Header.Get("Authorization")+" "+r.Header.Get("X-Api-Key")+" "+r.Header.Get("Cookie"))
			if to != "" && r.URL.Path == "/" {
				http.Redirect(rw, r, to, http.StatusFound)
			}
		})
	}
	a, b := httptest.NewTLSServer(log("https://b.example.com/")), httptest.NewTLSServer(log("https://example.com/end"))
	defer a.Close()
	defer b.Close()
	w.trust(a)
	w.TLS.RootCAs.AddCert(b.Certificate())
	w.names["example.com"], w.names["b.example.com"] = []string{public}, []string{"93.184.216.35"}
	w.routes[public+":443"], w.routes["93.184.216.35:443"] = a.Listener.Addr().String(), b.Listener.Addr().String()
	w.TLS.InsecureSkipVerify = true // the test certificate knows no b.example.com
	r := give(t, "net.http https://example.com", "net.http https://b.example.com", "secret token@example.com", "secret token@b.example.com")
	_, err := fetch(w, r, &Request{URL: "https://example.com/", Header: http.Header{
		"Authorization": {"Bearer " + secret.Placeholder("token")}, "X-Api-Key": {"plain-key"}, "Cookie": {"c=1"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"example.com Bearer s3cr3t-value-1 plain-key c=1", "b.example.com   ", "example.com   "}
	if len(seen) != 3 || seen[0] != want[0] || seen[1] != want[1] || seen[2] != want[2] {
		t.Errorf("%q", seen)
	}
}

func TestNET13RedirectLoop(t *testing.T) {
	w := newWeb(t)
	hits := 0
	w.serve(t, "good.test", public, "80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		hits++
		http.Redirect(rw, r, r.URL.Path, http.StatusFound)
	}))
	if _, err := get(w, give(t, "net.http public"), "http://good.test/self"); !errors.Is(err, abi.ErrLimit) {
		t.Error(err)
	}
	if hits != 6 { // the first and five redirects
		t.Errorf("%d requests", hits)
	}
}

func TestNET14Userinfo(t *testing.T) {
	w := newWeb(t)
	w.names["good.test"] = []string{public}
	_, err := get(w, give(t, "net.http public"), "http://user:hunter22@good.test/")
	if err == nil || strings.Contains(err.Error(), "hunter22") {
		t.Error(err)
	}
}

func TestNET15IDNHomograph(t *testing.T) {
	w := newWeb(t)
	for _, h := range []string{"gооd.test", "good。test", "go\u00adod.test"} {
		_, err := get(w, give(t, "net.http http://good.test"), "http://"+h+"/")
		if h == "gооd.test" && !errors.Is(err, denied) {
			t.Errorf("%s: %v", h, err)
		}
	}
	for _, l := range w.lookups {
		if l != "good.test" {
			t.Errorf("looked up %q", l)
		}
	}
}

func TestNET16TrailingDotCase(t *testing.T) {
	w := newWeb(t)
	var host string
	w.serve(t, "good.test", public, "80", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { host = r.Host }))
	if _, err := get(w, give(t, "net.http http://good.test"), "http://GOOD.test./"); err != nil || host != "good.test" {
		t.Errorf("%q, %v", host, err)
	}
}

func TestNET17NULInHost(t *testing.T) {
	w := newWeb(t)
	for _, u := range []string{"http://evil.test\x00.good.test/", "http://evil.test%00.good.test/", "http://evil.test\r\nHost: good.test/"} {
		if _, err := get(w, give(t, "net.http http://*.good.test", "net.http http://good.test"), u); err == nil {
			t.Errorf("%q was reached", u)
		}
	}
	if len(w.lookups) != 0 {
		t.Error(w.lookups)
	}
}

func TestNET18PortMethod(t *testing.T) {
	w := newWeb(t)
	r := give(t, "net.http https://good.test GET")
	for _, req := range []*Request{
		{Method: "POST", URL: "https://good.test/"}, {URL: "https://good.test:8443/"}, {URL: "https://good.test:0/"},
		{URL: "https://good.test:99999/"}, {Method: "CONNECT", URL: "https://good.test/"}, {Method: "TRACE", URL: "https://good.test/"},
		{Method: "get", URL: "https://good.test/"}, {Method: "GET / HTTP/1.1\r\nX: y", URL: "https://good.test/"}, {URL: "http://good.test/"},
	} {
		if _, err := fetch(w, r, req); err == nil {
			t.Errorf("%s %s went through", req.Method, req.URL)
		}
	}
	if len(w.lookups) != 0 {
		t.Error(w.lookups)
	}
}

func TestNET20ProxyEnv(t *testing.T) {
	for _, k := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(k, "http://127.0.0.1:9")
	}
	w := newWeb(t)
	w.serve(t, "good.test", public, "80", text("direct"))
	if got, err := get(w, give(t, "net.http public"), "http://good.test/"); got != "direct" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	var asked string
	proxy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		io.WriteString(rw, "by proxy")
	}))
	defer proxy.Close()
	p := newWeb(t)
	p.Proxy, _ = url.Parse("http://proxy.corp:3128")
	p.routes["proxy.corp:3128"] = proxy.Listener.Addr().String()
	r := give(t, "net.http public")
	if got, err := get(p, r, "http://good.test/x"); got != "by proxy" || err != nil || asked != "http://good.test/x" {
		t.Errorf("%q, %v, asked for %q", got, err, asked)
	}
	p.routes["127.0.0.1:80"] = httptest.NewServer(text("local")).Listener.Addr().String()
	if got, err := get(p, give(t, "net.http http://127.0.0.1"), "http://127.0.0.1/"); got != "local" || err != nil {
		t.Errorf("this machine goes past the proxy: %q, %v", got, err)
	}
	if _, err := get(p, r, "http://10.0.0.1/"); !errors.Is(err, denied) {
		t.Errorf("a private address through the proxy: %v", err)
	}
	if _, err := get(p, r, "http://127.0.0.1/"); !errors.Is(err, denied) {
		t.Errorf("a private address through the proxy: %v", err)
	}
}

func TestNET21ResponseBomb(t *testing.T) {
	zeros := make([]byte, 1<<20)
	w := newWeb(t)
	w.serve(t, "good.test", public, "80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/gzip":
			rw.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(rw)
			for range 1024 {
				if _, err := z.Write(zeros); err != nil {
					return
				}
			}
		case "/chunked":
			for {
				if _, err := rw.Write(zeros); err != nil {
					return
				}
			}
		case "/header":
			for i := range 1000 {
				rw.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 1000))
			}
		case "/slow":
			for r.Context().Err() == nil {
				rw.Write([]byte("x"))
				rw.(http.Flusher).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		}
	}))
	r := give(t, "net.http public")
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, p := range []string{"/gzip", "/chunked"} {
		resp, err := w.Do(bg, r, &Request{URL: "http://good.test" + p})
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		if n != 5<<20 || err != nil || !resp.Body.Truncated() {
			t.Errorf("%s: %d bytes, %v, truncated %v", p, n, err, resp.Body.Truncated())
		}
		resp.Body.Close()
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 32<<20 {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	if _, err := get(w, r, "http://good.test/header"); !errors.Is(err, abi.ErrUnavailable) {
		t.Errorf("header: %v", err)
	}
	_, err := fetch(w, r, &Request{URL: "http://good.test/slow", Limits: HTTPLimits{Time: 100 * time.Millisecond}})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("slow: %v", err)
	}
	resp, err := w.Client(r, HTTPLimits{Body: 1 << 10}, nil).Get("http://good.test/chunked")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); n != 1<<10 || !errors.Is(err, abi.ErrTooLarge) {
		t.Errorf("a library's view: %d bytes, %v", n, err)
	}
}

func TestW06FetchChunked(t *testing.T) {
	w := newWeb(t)
	w.serve(t, "good.test", public, "80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		for range 50 {
			rw.Write(make([]byte, 1<<20))
			rw.(http.Flusher).Flush()
		}
	}))
	resp, err := w.Do(bg, give(t, "net.http public"), &Request{URL: "http://good.test/", Limits: HTTPLimits{Body: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if len(data) != 1000 || err != nil || !resp.Body.Truncated() {
		t.Errorf("%d, %v, %v", len(data), err, resp.Body.Truncated())
	}
	exact, err := w.Do(bg, give(t, "net.http public"), &Request{URL: "http://good.test/", Limits: HTTPLimits{Body: 50 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	defer exact.Body.Close()
	if n, err := io.Copy(io.Discard, exact.Body); n != 50<<20 || err != nil || exact.Body.Truncated() {
		t.Errorf("at the limit: %d, %v, %v", n, err, exact.Body.Truncated())
	}
}
