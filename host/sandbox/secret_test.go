package sandbox_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/reach/secret"
	"github.com/elfhost/elfhost/host/sandbox"
)

const secretValue = `k3y "with"/odd+bytes-0123456789`

// oneSecret is a store of one.
type oneSecret struct{ secret.Store }

func (oneSecret) Get(name string) (string, error) {
	if name != "token" {
		return "", abi.ErrNotFound
	}
	return secretValue, nil
}

// forms are what a server may make of a value.
func forms(v string) map[string]string {
	quoted, _ := json.Marshal(v)
	return map[string]string{
		"raw": v, "json": string(quoted[1 : len(quoted)-1]), "base64": base64.StdEncoding.EncodeToString([]byte(v)), "base64url": base64.URLEncoding.EncodeToString([]byte(v)),
		"shifted": base64.StdEncoding.EncodeToString([]byte("x:" + v)), "hex": hex.EncodeToString([]byte(v)),
		"HEX": strings.ToUpper(hex.EncodeToString([]byte(v))), "query": url.QueryEscape(v), "path": url.PathEscape(v),
	}
}

// leaks names the form in which a text shows the secret. Of a shifted base64
// the middle shows it.
func leaks(text string) string {
	for name, f := range forms(secretValue) {
		if name == "shifted" {
			f = f[8 : len(f)-8]
		}
		if strings.Contains(text, f) {
			return name
		}
	}
	return ""
}

// A secret reaches the server it is for, and nobody else: not the guest, the
// log, an error, a note of the audit, or the receipt, whatever the server does.
func TestSecretsStayOutside(t *testing.T) {
	var got http.Header
	var path string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, path = r.Header, r.URL.Path
		switch {
		case strings.HasPrefix(r.URL.Path, "/hang"):
			c, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				c.Close()
			}
		case strings.HasPrefix(r.URL.Path, "/away"):
			w.Header().Set("Location", "http://"+url.QueryEscape(secretValue)+".invalid/"+url.PathEscape(secretValue))
			w.WriteHeader(http.StatusFound)
		default:
			for name, f := range forms(r.Header.Get("X-Key")) {
				if name != "raw" && name != "json" { // a header cannot hold it in every server
					w.Header().Set("X-"+name, f)
				}
				fmt.Fprintf(w, "%s=%s\n", name, f)
			}
		}
	}))
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	web, token := "http://127.0.0.1:"+port+" GET", "token@127.0.0.1"
	p := newProbe(t, abi.Manifest{Needs: append(needs[2:len(needs):len(needs)],
		abi.Need{Cap: abi.NetHTTP, Scope: []string{web}}, abi.Need{Cap: abi.Secret, Scope: []string{token}})})
	p.loader.HTTP = &reach.HTTP{Secrets: &secret.Vault{Store: oneSecret{}}}
	p.refused(args{Do: "use", A: s.URL, B: "token"}, "denied", "net.http "+web)
	p.refused(args{Do: "use", A: s.URL, B: "other"}, "denied", "net.http "+web, "secret "+token)

	var notes []string
	r := rights(t, "net.http "+web, "secret "+token)
	r.Note = func(u policy.Use, err error) { notes = append(notes, fmt.Sprintf("%+v %v", u, err)) }
	for _, at := range []string{"/echo", "/echo/{}", "/echo?q={}", "/hang/{}", "/away/{}", "/away?q={}"} {
		got, path, notes, p.logs = nil, "", nil, nil
		res, err := p.call(t.Context(), args{Do: "use", A: s.URL + at, B: "token"}, r)
		if got.Get("X-Key") != secretValue {
			t.Errorf("%s: the server got %q, %q", at, got.Get("X-Key"), path)
		}
		if strings.HasSuffix(at, "/{}") && !strings.HasSuffix(path, secretValue) {
			t.Errorf("%s: the path is %q", at, path)
		}
		receipt, _ := json.Marshal(p.last)
		answer, _ := json.Marshal(res)
		for where, text := range map[string]string{
			"the answer": string(answer) + res.Text(), "the error": fmt.Sprint(err), "the log": logText(p.logs),
			"the receipt": string(receipt), "the audit": strings.Join(notes, "\n"),
		} {
			if form := leaks(text); form != "" {
				t.Errorf("%s: %s shows the secret (%s): %.500s", at, where, form, text)
			}
		}
		if len(p.logs) == 0 || len(notes) == 0 {
			t.Errorf("%s: %d log lines, %d notes: the test is blind", at, len(p.logs), len(notes))
		}
	}
}

// Who is refused a placeholder learns which grant would help, if one would.
func TestSecretDenial(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	p.loader.HTTP = &reach.HTTP{Secrets: &secret.Vault{Store: oneSecret{}}}
	for name, want := range map[string]policy.Grant{
		"token": {Cap: abi.Secret, Scope: []string{"token@api.example"}}, "other": {},
	} {
		var got *policy.Denial
		r := rights(t)
		r.Note = func(_ policy.Use, err error) { errors.As(err, &got) }
		if _, err := p.call(t.Context(), args{Do: "use", A: "https://api.example", B: name}, r); err != nil {
			t.Fatal(err)
		}
		if got == nil || got.Final != (want.Cap == "") || !slices.Equal(got.Grant.Scope, want.Scope) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func logText(lines []sandbox.LogLine) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.Text + "\n")
	}
	return b.String()
}
