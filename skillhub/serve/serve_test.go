package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/store"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/hub"
	"github.com/elfhost/elfhost/skillhub/pack"
	"github.com/elfhost/elfhost/skillhub/sign"
)

// archive makes a package, signed with a key of that name; "" is unsigned.
func archive(t testing.TB, keys, key, publisher, name, version, description string) []byte {
	t.Helper()
	dir := fstest.MapFS{
		"elf.toml": {Data: []byte("abi = \"elf/1\"\nname = \"" + name + "\"\nversion = \"" + version + "\"\npublisher = \"" + publisher + "\"\ndescription = " + quoted(description) + "\n")},
		"SKILL.md": {Data: []byte("---\nname: " + name + "\ndescription: x\n---\nDo it.\n")},
	}
	if key != "" {
		secret, err := sign.Open(keys, key, "")
		if err != nil {
			if _, err = sign.New(keys, key, ""); err == nil {
				secret, err = sign.Open(keys, key, "")
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		c, err := pack.Folder(t.Context(), io.Discard, dir, pack.Options{})
		if err != nil {
			t.Fatal(err)
		}
		statement, signature, err := sign.Make(c, secret)
		if err != nil {
			t.Fatal(err)
		}
		dir[pack.StatementFile] = &fstest.MapFile{Data: statement}
		dir[pack.SignatureFile] = &fstest.MapFile{Data: signature}
	}
	var b bytes.Buffer
	if _, err := pack.Folder(t.Context(), &b, dir, pack.Options{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

type fixture struct {
	*Server
	author *hub.Author
	tokens string
	keys   string
	root   skillhub.Digest
	url    string
}

func newServer(t testing.TB) *fixture {
	t.Helper()
	dir := t.TempDir()
	f := &fixture{author: &hub.Author{Dir: filepath.Join(dir, "hub"), NoSync: true}, keys: filepath.Join(dir, "publishers"), tokens: filepath.Join(dir, "tokens")}
	var err error
	if f.root, err = f.author.Init(t.Context(), hub.InitOptions{Bits: 2}); err != nil {
		t.Fatal(err)
	}
	if f.Server, err = New(t.Context(), Options{Author: f.author, Tokens: f.tokens, Log: func(s string) { t.Log(s) }}); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(f)
	t.Cleanup(func() {
		web.Close()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	f.url = web.URL
	return f
}

func (f *fixture) publish(t testing.TB, b []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x"+skillhub.Ext)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := hub.ReadRelease(t.Context(), file)
	if err == nil {
		_, err = f.author.Publish(t.Context(), hub.PublishOptions{}, r)
	}
	if err == nil {
		_, err = f.set.Refresh(t.Context(), "")
	}
	if err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, url string) (int, string, http.Header) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

// client is another machine.
func (f *fixture) client(t testing.TB) *hub.Set {
	t.Helper()
	dir := t.TempDir()
	h := &reach.HTTP{}
	t.Cleanup(func() { h.Close() })
	o := hub.Options{
		State: dir, HTTP: h,
		Rights: func(g policy.Grant) (policy.Rights, error) {
			gs, err := policy.New("a hub", g)
			return policy.Rights{Grants: gs}, err
		},
		Index: func(ctx context.Context) (*store.Index, error) {
			return store.OpenIndex(ctx, filepath.Join(dir, "index.db"))
		},
	}
	offer, err := hub.Look(t.Context(), o, f.url, f.root)
	if err != nil {
		t.Fatal(err)
	}
	r, err := hub.Pin(t.Context(), o, "acme", f.url, offer)
	if err != nil {
		t.Fatal(err)
	}
	return hub.NewSet(o, []hub.Remote{r})
}

func TestServesTheHub(t *testing.T) {
	f := newServer(t)
	one := archive(t, f.keys, "acme", "acme", "read-pdf", "1.0.0", "Reads PDF files")
	f.publish(t, one)
	c := f.client(t)
	for range 3 {
		var got bytes.Buffer
		if _, err := c.Fetch(t.Context(), skillhub.Ref{Kind: skillhub.Named, Name: "read-pdf"}, &got); err != nil || !bytes.Equal(got.Bytes(), one) {
			t.Fatalf("Fetch: %v", err)
		}
	}
	if err := f.installs.save(f.author); err != nil {
		t.Fatal(err)
	}
	if n, err := f.author.Installs(); err != nil || n["read-pdf"] != 3 {
		t.Errorf("Installs = %v, %v", n, err)
	}
	f.publish(t, archive(t, f.keys, "acme", "acme", "other", "1.0.0", ""))
	if _, err := c.Refresh(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if r, err := c.Search(t.Context(), "pdf", 5); err != nil || len(r.Listings) != 1 || r.Listings[0].Installs != 3 {
		t.Errorf("Search = %+v, %v", r, err)
	}
	status, body, _ := get(t, f.url+"/api/v1/search?q=pdf")
	if status != 200 || !strings.Contains(body, `"name":"read-pdf"`) || strings.Contains(body, `"hub"`) {
		t.Errorf("search: %d %s", status, body)
	}
	if status, body, _ := get(t, f.url+"/api/v1/packages/read-pdf"); status != 200 || !strings.Contains(body, string(skillhub.DigestOf(one))) {
		t.Errorf("package: %d %s", status, body)
	}
	if status, _, _ := get(t, f.url+"/api/v1/packages/absent"); status != 404 {
		t.Errorf("a package that is not there: %d", status)
	}
}

func TestServesNothingElse(t *testing.T) {
	f := newServer(t)
	if err := f.author.SetInstalls(map[string]int64{"x": 1}); err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{"metadata/.new-1": "x", "metadata/secret.json": "x", "packages/x/secret.txt": "x", "blobs/sha256/aa/notes": "x"} {
		p := filepath.Join(f.author.Dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(body), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(f.author.Dir, "metadata", "99.root.json")
	if err := os.Symlink(f.tokens, link); err != nil {
		t.Log(err)
	}
	for _, name := range []string{
		"/installs.json", "/metadata/", "/metadata/.new-1", "/metadata/secret.json", "/packages/x/secret.txt", "/blobs/sha256/aa/notes", "/metadata/99.root.json",
		"/metadata/..%2f..%2fhub.keys%2fhub.json", "/../hub.keys/hub.json", "/%2e%2e/hub.keys/hub.json", "/blobs/sha256/aa/../../../installs.json", "/pages/layout.html",
	} {
		req, err := http.NewRequest("GET", f.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.URL.Opaque = name // as it is
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == 200 {
			t.Errorf("GET %s is answered", name)
		}
	}
	for _, method := range []string{"PUT", "DELETE", "POST"} {
		req, _ := http.NewRequest(method, f.url+"/metadata/timestamp.json", strings.NewReader("x"))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, resp.StatusCode)
		}
	}
}

func TestUpload(t *testing.T) {
	f := newServer(t)
	token, err := NewToken(t.Context(), f.tokens, "acme")
	if err != nil {
		t.Fatal(err)
	}
	old, err := NewToken(t.Context(), f.tokens, "gone")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := RevokeTokens(t.Context(), f.tokens, "gone"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if b, err := os.ReadFile(f.tokens); err != nil || strings.Contains(string(b), token) {
		t.Errorf("the file of tokens holds the token: %v", err)
	}
	good := archive(t, f.keys, "acme", "acme", "one", "1.0.0", "")
	for _, x := range []struct {
		what   string
		token  string
		body   []byte
		status int
		text   string
	}{
		{"no token", "", good, 401, "token"},
		{"a wrong token", token[1:] + "-", good, 401, "token"},
		{"a revoked token", old, good, 401, "token"},
		{"a digest for a token", digestIn(t, f.tokens), good, 401, "token"},
		{"not a package", token, []byte("x"), 422, "refused"},
		{"cut off", token, good[:len(good)-20], 422, "refused"},
		{"unsigned", token, archive(t, f.keys, "", "acme", "one", "1.0.0", ""), 422, "not signed"},
		{"another publisher's", token, archive(t, f.keys, "evil", "evil", "one", "1.0.0", ""), 403, "another publisher"},
		{"too large", token, make([]byte, skillhub.MaxArchive+1), 413, "at the most"},
		{"good", token, good, 201, `"name":"one"`},
		{"good again", token, good, 201, ""},
		{"other bytes", token, archive(t, f.keys, "acme", "acme", "one", "1.0.0", "changed"), 409, "other bytes"},
		{"another key", token, archive(t, f.keys, "second", "acme", "one", "1.1.0", ""), 403, "another key"},
	} {
		req, err := http.NewRequest("POST", f.url+"/api/v1/packages", bytes.NewReader(x.body))
		if err != nil {
			t.Fatal(err)
		}
		if x.token != "" {
			req.Header.Set("Authorization", "Bearer "+x.token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", x.what, err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != x.status || !strings.Contains(string(b), x.text) || strings.Contains(string(b), os.TempDir()) {
			t.Errorf("%s: %d %s, want %d with %q", x.what, resp.StatusCode, b, x.status, x.text)
		}
	}
	var got bytes.Buffer
	if _, err := f.client(t).Fetch(t.Context(), skillhub.Ref{Kind: skillhub.Named, Name: "one"}, &got); err != nil || !bytes.Equal(got.Bytes(), good) {
		t.Errorf("what was uploaded is not what is fetched: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(f.state, "upload-*")); err != nil || len(left) > 0 {
		t.Errorf("uploads are left: %q, %v", left, err)
	}
	if err := os.Chmod(f.tokens, 0o644); err != nil {
		t.Fatal(err)
	}
	if p, err := f.publisher(&http.Request{Header: http.Header{"Authorization": {"Bearer " + token}}}); err == nil || p != "" {
		t.Errorf("a file of tokens that others can read counts: %q", p)
	}
}

// TestUploadClient: the token goes to the hub's own address, and nowhere else.
func TestUploadClient(t *testing.T) {
	f := newServer(t)
	token, err := NewToken(t.Context(), f.tokens, "acme")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "one"+skillhub.Ext)
	if err := os.WriteFile(file, archive(t, f.keys, "acme", "acme", "one", "1.0.0", ""), 0o600); err != nil {
		t.Fatal(err)
	}
	h := &reach.HTTP{}
	defer h.Close()
	o := hub.Options{HTTP: h, Rights: func(g policy.Grant) (policy.Rights, error) {
		gs, err := policy.New("a hub", g)
		return policy.Rights{Grants: gs}, err
	}}
	if l, err := hub.Upload(t.Context(), o, f.url+"/", token, file); err != nil || l.Name != "one" {
		t.Errorf("Upload = %+v, %v", l, err)
	}
	if _, err := hub.Upload(t.Context(), o, f.url, "wrong", file); !errors.Is(err, hub.ErrRefusedUpload) || strings.Contains(err.Error(), token) {
		t.Errorf("with a wrong token: %v", err)
	}
	stolen := ""
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen = r.Header.Get("Authorization") }))
	defer thief.Close()
	redirect := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer redirect.Close()
	if _, err := hub.Upload(t.Context(), o, redirect.URL, token, file); err == nil || stolen != "" {
		t.Errorf("a redirected upload: %v, the thief has %q", err, stolen)
	}
	if _, err := hub.Upload(t.Context(), o, "http://hub.example", token, file); err == nil || !strings.Contains(err.Error(), "https only") {
		t.Errorf("over plain HTTP: %v", err)
	}
	o.Offline = "off"
	if _, err := hub.Upload(t.Context(), o, f.url, token, file); !errors.Is(err, skillhub.ErrOffline) {
		t.Errorf("offline: %v", err)
	}
}

func digestIn(t *testing.T, file string) string {
	ts, err := readTokens(file)
	if err != nil || len(ts) != 1 {
		t.Fatal(ts, err)
	}
	return ts[0].sum
}

// TestPagesEscape: the texts of a package are strangers'.
func TestPagesEscape(t *testing.T) {
	f := newServer(t)
	f.publish(t, archive(t, f.keys, "acme", "acme", "bad", "1.0.0", "x <script>alert(1)</script> \"onload=x \u202egnp.exe"))
	for _, path := range []string{"/", "/?q=%3Cscript%3Ealert(2)%3C/script%3E", "/?q=bad", "/p/bad", "/p/absent", "/p/..%2f"} {
		status, body, h := get(t, f.url+path)
		if strings.Contains(body, "<script") || strings.Contains(body, "\u202e") {
			t.Errorf("%s: %s", path, body)
		}
		if !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'") || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", path, h)
		}
		if (status == 200) != (path != "/p/absent" && path != "/p/..%2f") {
			t.Errorf("%s: %d", path, status)
		}
	}
	_, body, _ := get(t, f.url+"/p/bad")
	if !strings.Contains(body, "U&#43;202E") || !strings.Contains(body, "elfhost install ") || !strings.Contains(body, string(f.root)) {
		t.Errorf("the page of a package: %s", body)
	}
	req, _ := http.NewRequest("GET", f.url, nil)
	req.Host = `x" onclick="y`
	if resp, err := http.DefaultClient.Do(req); err == nil {
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if strings.Contains(string(b), "onclick") {
			t.Errorf("a host of the client's making is on the page: %s", b)
		}
	}
}

func TestServeStops(t *testing.T) {
	f := newServer(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Serve(ctx, l) }()
	if status, _, _ := get(t, "http://"+l.Addr().String()+"/metadata/root.json"); status != 200 {
		t.Errorf("root.json: %d", status)
	}
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it does not stop")
	}
}
