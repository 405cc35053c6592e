package oci

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/host/policy"
)

const password = "correct-horse-battery"

// TestLogIn: basic credentials, tokens got with them, and tokens got with a
// refresh token; each is shown to that registry alone, and in no error.
func TestLogIn(t *testing.T) {
	f := newFake(t)
	r := f.image("t", manifest{Layers: []descriptor{f.layer(LayerType, []byte("archive"))}})
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+password))
	challenge := ""
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		auth := r.Header.Get("Authorization")
		switch {
		case r.URL.Path == "/token" && r.Method == "GET":
			if auth != basic || !strings.Contains(r.URL.Query().Get("scope"), "repository:acme/x:pull") {
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}
			fmt.Fprint(w, `{"token":"tok-tok-tok"}`)
		case r.URL.Path == "/token":
			if r.FormValue("refresh_token") != "refresh-me-please" || r.FormValue("grant_type") != "refresh_token" {
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}
			fmt.Fprint(w, `{"access_token":"tok-tok-tok"}`)
		case strings.HasPrefix(challenge, "Basic") && auth == basic, strings.HasPrefix(challenge, "Bearer") && auth == "Bearer tok-tok-tok":
			return false
		default:
			w.Header().Set("WWW-Authenticate", challenge)
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"errors":[{"code":"UNAUTHORIZED","message":"you sent %s"}]}`, auth)
		}
		return true
	}
	bearer := `Bearer realm="http://` + f.host + `/token",service="x"`
	for name, c := range map[string]struct {
		challenge string
		config    string
		ok        bool
	}{
		"basic":                 {"Basic realm=x", `{"auths":{"HOST":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("me:"+password)) + `"}}}`, true},
		"of a part":             {"Basic realm=x", `{"auths":{"http://HOST/v2/":{"auth":"eDp5"},"HOST/acme":{"username":"me","password":"` + password + `"}}}`, true},
		"token":                 {bearer, `{"auths":{"HOST":{"username":"me","password":"` + password + `"}}}`, true},
		"refresh":               {bearer, `{"auths":{"HOST":{"identitytoken":"refresh-me-please"}}}`, true},
		"ready":                 {bearer, `{"auths":{"HOST":{"registrytoken":"tok-tok-tok"}}}`, true},
		"wrong":                 {"Basic realm=x", `{"auths":{"HOST":{"username":"me","password":"` + password + `2"}}}`, false},
		"wrong for a token":     {bearer, `{"auths":{"HOST":{"username":"me","password":"` + password + `2"}}}`, false},
		"of another registry":   {"Basic realm=x", `{"auths":{"other.test":{"username":"me","password":"` + password + `"},"HOST/acm":{"username":"me","password":"` + password + `"}}}`, false},
		"none":                  {"Basic realm=x", `{}`, false},
		"helper":                {"Basic realm=x", `{"credHelpers":{"HOST":"pass"}}`, false},
		"helper for everything": {"Basic realm=x", `{"auths":{"HOST":{}},"credsStore":"desktop"}`, false},
	} {
		challenge = c.challenge
		g := client(t)
		var err error
		if g.Credentials, err = ParseCredentials([]byte(strings.ReplaceAll(c.config, "HOST", f.host))); err != nil {
			t.Fatal(err)
		}
		_, _, err = fetch(t.Context(), g, r)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			continue
		}
		for _, form := range []string{password, basic[6:], "tok-tok"} {
			if strings.Contains(err.Error(), form) {
				t.Errorf("%s: the error holds a secret: %v", name, err)
			}
		}
		if strings.HasPrefix(name, "helper") != errors.Is(err, ErrHelper) || !errors.Is(err, ErrLogin) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Credentials do not follow to where a registry sends one on.
func TestCredentialsStayWithTheirRegistry(t *testing.T) {
	f, other := newFake(t), newFake(t)
	r := f.image("t", manifest{Layers: []descriptor{f.layer(LayerType, []byte("archive"))}})
	seen := ""
	other.before = func(w http.ResponseWriter, r *http.Request) bool {
		seen += r.Header.Get("Authorization")
		fmt.Fprint(w, "archive")
		return true
	}
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Header.Get("Authorization") == "":
			w.Header().Set("WWW-Authenticate", "Basic realm=x")
			w.WriteHeader(http.StatusUnauthorized)
		case strings.Contains(r.URL.Path, "/blobs/"):
			http.Redirect(w, r, "http://"+other.host+"/there", http.StatusFound)
		default:
			return false
		}
		return true
	}
	g := client(t)
	g.Credentials = Credentials{f.host: {User: "me", Password: password}}
	rights := g.Rights
	g.Rights = func(want policy.Grant) (policy.Rights, error) { // both are on this machine
		want.Scope = append(want.Scope, "http://"+other.host)
		return rights(want)
	}
	if _, _, err := fetch(t.Context(), g, r); err != nil {
		t.Fatal(err)
	}
	if len(other.asked) != 1 || seen != "" {
		t.Errorf("asked %q, told %q", other.asked, seen)
	}
}

func TestCredentialsPrintAsNothing(t *testing.T) {
	c := Credentials{"x": {User: "me", Password: password, Refresh: password, Token: password}}
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%v %+v %#v %s", c, c, c["x"], c["x"])} {
		if strings.Contains(text, password) {
			t.Errorf("%s", text)
		}
	}
	for _, text := range []string{`{"auths":{"x":{"auth":"` + password + `!"}}}`, `{"auths":"` + password + `"}`, `{"auths":{"x":` + password + `}}`, password} {
		_, err := ParseCredentials([]byte(text))
		if err == nil || strings.Contains(err.Error(), password) || strings.Contains(err.Error(), "correct") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestReadCredentials(t *testing.T) {
	dir := t.TempDir()
	write := func(name, user string) string {
		p := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(p), 0o700)
		os.WriteFile(p, []byte(`{"auths":{"https://index.docker.io/v1/":{"username":"`+user+`","password":"p"}}}`), 0o600)
		return p
	}
	write(".docker/config.json", "home")
	write("d/config.json", "docker")
	file := write("auth.json", "file")
	env := map[string]string{"HOME": dir}
	for _, c := range []struct{ key, value, user string }{
		{"HOME", dir, "home"}, {"DOCKER_CONFIG", filepath.Join(dir, "d"), "docker"}, {"REGISTRY_AUTH_FILE", file, "file"},
	} {
		env[c.key] = c.value
		got, err := ReadCredentials(func(k string) string { return env[k] })
		l := location{registry: "docker.io", repo: "library/x"}
		if cred, ok := got.find(l); err != nil || !ok || cred.User != c.user {
			t.Errorf("%s: %v", c.key, err)
		}
	}
	if got, err := ReadCredentials(func(string) string { return "" }); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := ReadCredentials(func(k string) string { return map[string]string{"REGISTRY_AUTH_FILE": dir}[k] }); err == nil {
		t.Error("a folder is read")
	}
	os.WriteFile(file, []byte(strings.Repeat(" ", maxConfig+1)), 0o600)
	if _, err := ReadCredentials(func(k string) string { return env[k] }); err == nil || !strings.Contains(err.Error(), "over") {
		t.Errorf("%v", err)
	}
}

func FuzzCredentials(f *testing.F) {
	f.Add([]byte(`{"auths":{"https://index.docker.io/v1/":{"auth":"bWU6eA=="},"x/y":{}},"credsStore":"a","credHelpers":{"z":"b"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseCredentials(b)
		if err == nil {
			c.find(location{registry: "x", repo: "y/z"})
		}
	})
}
