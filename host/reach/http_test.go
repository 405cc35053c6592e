package reach

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach/secret"
)

func TestBudget(t *testing.T) {
	w := newWeb(t)
	w.serve(t, "good.test", public, "80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		io.Copy(rw, r.Body)
	}))
	r := give(t, "net.http public GET,POST")
	b := &Budget{MaxRequests: 3, MaxIn: 10, MaxOut: 15}
	post := func(n int) error {
		_, err := fetch(w, r, &Request{Method: "POST", URL: "http://good.test/", Body: strings.NewReader(strings.Repeat("x", n)), Budget: b})
		return err
	}
	if err := post(8); err != nil {
		t.Error(err)
	}
	if err := post(8); !errors.Is(err, abi.ErrLimit) {
		t.Errorf("bytes out: %v", err)
	}
	b.MaxOut = 0
	if err := post(8); !errors.Is(err, abi.ErrLimit) {
		t.Errorf("bytes in: %v", err)
	}
	b.MaxIn = 0
	if err := post(1); !errors.Is(err, abi.ErrLimit) {
		t.Errorf("requests: %v", err)
	}
	if n, in, out := b.Spent(); n != 4 || in != 16 || out != 24 {
		t.Error(n, in, out)
	}
}

func TestRedirectMethods(t *testing.T) {
	w := newWeb(t)
	code := 0
	var got string
	w.serve(t, "good.test", public, "80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.Method + " " + string(body) + r.Header.Get("Content-Type")
		if r.URL.Path == "/" {
			http.Redirect(rw, r, "/to", code)
		}
	}))
	r := give(t, "net.http public GET,POST,HEAD")
	for _, c := range []struct {
		code         int
		method, want string
	}{{301, "POST", "GET "}, {302, "POST", "GET "}, {303, "POST", "GET "}, {307, "POST", "POST hit/x"}, {308, "POST", "POST hit/x"}, {302, "HEAD", "HEAD "}} {
		code = c.code
		req := &Request{Method: c.method, URL: "http://good.test/", Header: http.Header{"Content-Type": {"t/x"}}}
		if c.method == "POST" {
			req.Body = strings.NewReader("hi")
		} else {
			req.Header = nil
		}
		if _, err := fetch(w, r, req); err != nil || got != c.want {
			t.Errorf("%d %s: %q, %v", c.code, c.method, got, err)
		}
	}
	code = 307
	resp, err := w.Do(bg, r, &Request{Method: "POST", URL: "http://good.test/", Body: io.MultiReader(strings.NewReader("once"))})
	if err != nil || resp.Status != 307 {
		t.Errorf("a body that cannot be repeated: %v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
	resp, err = w.Do(bg, r, &Request{URL: "http://good.test/", Limits: HTTPLimits{Redirects: -1}})
	if err != nil || resp.Status != 307 {
		t.Errorf("no redirects wanted: %v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
}

func TestStreamStaysLive(t *testing.T) {
	w := newWeb(t)
	w.Secrets = &secret.Vault{Store: memory{"token": "s3cr3t-value-1"}}
	w.Secrets.Scrub.Add("s3cr3t-value-1")
	next := make(chan bool)
	w.serve(t, "good.test", public, "80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		for i := range 3 {
			fmt.Fprintf(rw, "data: %d\n\n", i)
			rw.(http.Flusher).Flush()
			<-next
		}
	}))
	resp, err := w.Client(give(t, "net.http public"), HTTPLimits{Time: -1, Body: -1}, nil).Get("http://good.test/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	buf := make([]byte, 100)
	for i := range 3 {
		n, err := resp.Body.Read(buf)
		if want := fmt.Sprintf("data: %d\n\n", i); string(buf[:n]) != want || err != nil {
			t.Errorf("%q, %v", buf[:n], err)
		}
		next <- true
	}
}

func TestClientView(t *testing.T) {
	w := newWeb(t)
	w.serve(t, "good.test", public, "80", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/" {
			http.Redirect(rw, r, "/end", http.StatusTemporaryRedirect)
			return
		}
		fmt.Fprintf(rw, "%s %d %s", body, r.ContentLength, r.Header.Get("X-Api-Key"))
	}))
	c := w.Client(give(t, "net.http http://good.test GET,POST"), HTTPLimits{}, nil)
	req, _ := http.NewRequest("POST", "http://good.test/", strings.NewReader("body"))
	req.Header.Set("X-Api-Key", "k")
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	data, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(data) != "body 4 k" || resp.Request.URL.Path != "/end" {
		t.Errorf("%q from %s", data, resp.Request.URL)
	}
	if _, err := c.Get("http://other.test/"); !errors.Is(err, denied) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	req, _ = http.NewRequestWithContext(ctx, "GET", "http://good.test/", nil)
	if _, err := c.Do(req); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestSecretsAreFilledLast(t *testing.T) {
	const value = "s3cr3t/v+lue ü"
	w := newWeb(t)
	w.Secrets = &secret.Vault{Store: memory{"tok": value, "my_key": "other-secret"}}
	var uses []policy.Use
	var got string
	s := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		user, pass, _ := r.BasicAuth()
		got = r.URL.Query().Get("q") + "|" + r.URL.Path + "|" + r.Header.Get("X-Key") + "|" + user + ":" + pass
		rw.Header().Set("Echo", r.Header.Get("X-Key"))
		fmt.Fprintf(rw, "raw %s, b64 %s, hex %x, pct %s", value, base64.StdEncoding.EncodeToString([]byte("x"+value+"y")), value, url.QueryEscape(value))
	}))
	defer s.Close()
	w.trust(s)
	w.names["example.com"] = []string{public}
	w.routes[public+":443"] = s.Listener.Addr().String()
	r := give(t, "net.http https://example.com", "secret tok@example.com", "secret my_key@example.com")
	r.Note = func(u policy.Use, _ error) { uses = append(uses, u) }
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+secret.Placeholder("my_key")))
	resp, err := w.Do(bg, r, &Request{URL: "https://example.com/p/" + secret.Placeholder("tok") + "?q=" + secret.Placeholder("tok"), Header: http.Header{
		"X-Key": {secret.Placeholder("my_key")}, "Authorization": {basic},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if want := value + "|/p/" + value + "|other-secret|me:other-secret"; got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
	body, _ := io.ReadAll(resp.Body)
	all := string(body) + fmt.Sprint(resp.Header) + resp.URL + fmt.Sprint(resp.Hops) + fmt.Sprint(uses)
	if w.Secrets.Scrub.String(all) != all || strings.Contains(all, value) {
		t.Errorf("a secret leaked: %s", all)
	}
	if !strings.HasPrefix(string(body), "raw [secret], b64 ") {
		t.Errorf("%q", body)
	}
	for name, req := range map[string]*Request{
		"no grant": {URL: "https://example.com/?q=" + secret.Placeholder("absent")},
		"plain":    {URL: "http://example.com/?q=" + secret.Placeholder("tok")},
	} {
		grant := give(t, "net.http https://example.com", "net.http http://example.com", "secret tok@example.com")
		if _, err := w.Do(bg, grant, req); !errors.Is(err, denied) {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.routes = nil
	w.Close()
	_, err = get(w, r, "https://example.com/?q="+secret.Placeholder("tok"))
	if err == nil || strings.Contains(err.Error(), value) {
		t.Error(err)
	}
}

func TestDecideStopsTheClock(t *testing.T) {
	w := newWeb(t)
	w.serve(t, "good.test", public, "80", text("ok"))
	r := policy.Rights{Decide: func(ctx context.Context, u policy.Use) error {
		time.Sleep(300 * time.Millisecond)
		return ctx.Err()
	}}
	var got string
	err := errors.New("not asked")
	for try := 0; err != nil && try < 20; try++ { // a busy machine may take the time that is left
		got, err = fetch(w, r, &Request{URL: "http://good.test/", Limits: HTTPLimits{Time: 150 * time.Millisecond}})
	}
	if got != "ok" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestTLSFiles(t *testing.T) {
	s := httptest.NewTLSServer(text("ok"))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	put(t, file, "-----BEGIN CERTIFICATE-----\n"+base64.StdEncoding.EncodeToString(s.Certificate().Raw)+"\n-----END CERTIFICATE-----\n")
	c, err := TLSFiles(file, "", "")
	if err != nil {
		t.Fatal(err)
	}
	w := newWeb(t)
	w.names["example.com"] = []string{public}
	w.routes[public+":443"] = s.Listener.Addr().String()
	if _, err := get(w, give(t, "net.http public"), "https://example.com/"); err == nil {
		t.Error("an unknown root was accepted")
	}
	w = newWeb(t)
	w.names["example.com"] = []string{public}
	w.routes[public+":443"] = s.Listener.Addr().String()
	w.TLS = c
	if got, err := get(w, give(t, "net.http public"), "https://example.com/"); got != "ok" || err != nil {
		t.Error(got, err)
	}
	for _, bad := range [][3]string{{"absent", "", ""}, {os.Args[0], "", ""}, {"", "absent", ""}} {
		if _, err := TLSFiles(bad[0], bad[1], bad[2]); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}

func TestDialTriesEveryAddress(t *testing.T) {
	w := newWeb(t)
	w.serve(t, "two.test", public, "80", text("second"))
	w.names["two.test"] = []string{"93.184.216.99," + public}
	var n atomic.Int32
	dial := w.Dial
	w.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		n.Add(1)
		return dial(ctx, network, addr)
	}
	if got, err := get(w, give(t, "net.http public"), "http://two.test/"); got != "second" || err != nil || n.Load() != 2 {
		t.Error(got, err, n.Load())
	}
}
