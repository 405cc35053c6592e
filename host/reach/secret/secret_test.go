package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/zalando/go-keyring"

	"github.com/elfhost/elfhost/abi"
)

func TestScrubForms(t *testing.T) {
	const v = `p@ss "w0rd"/+ü`
	var s Scrubber
	s.Add(v)
	s.Add("short")
	for name, text := range map[string]string{
		"raw": v, "hex": hex.EncodeToString([]byte(v)), "HEX": strings.ToUpper(hex.EncodeToString([]byte(v))),
		"query": url.QueryEscape(v), "path": url.PathEscape(v), "json": `p@ss \"w0rd\"/+ü`,
	} {
		if got := s.String("<" + text + ">"); got != "<[secret]>" {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding} {
		for n := range 4 {
			text := enc.EncodeToString([]byte("xyzw"[:n] + v + "after"))
			if got := s.String(text); !strings.Contains(got, "[secret]") {
				t.Errorf("base64 at %d: %q", n, got)
			}
		}
	}
	if got := s.String("short text"); got != "short text" {
		t.Errorf("%q", got)
	}
	err := s.Error(fmt.Errorf("using %s: %w", v, abi.ErrDenied))
	if strings.Contains(err.Error(), v) || !errors.Is(err, abi.ErrDenied) {
		t.Error(err)
	}
	if b := []byte("clean"); &s.Bytes(b)[0] != &b[0] {
		t.Error("clean bytes were copied")
	}
}

// Others escape other characters than Go does, and not always in capitals.
func TestScrubFormsOfOthers(t *testing.T) {
	const v = `p@ss w0rd/+"<*'~ü&x=1`
	var s Scrubber
	s.Add(v)
	for name, text := range map[string]string{
		"encodeURIComponent": `p%40ss%20w0rd%2F%2B%22%3C*'~%C3%BC%26x%3D1`,
		"encodeURI":          `p@ss%20w0rd/+%22%3C*'~%C3%BC&x=1`,
		"quote":              `p%40ss%20w0rd%2F%2B%22%3C%2A%27~%C3%BC%26x%3D1`,
		"quote, lower case":  `p%40ss%20w0rd%2f%2b%22%3c%2a%27~%c3%bc%26x%3d1`,
		"form":               `p%40ss+w0rd%2F%2B%22%3C*%27%7E%C3%BC%26x%3D1`,
		"JSON.stringify":     `p@ss w0rd/+\"<*'~ü&x=1`,
		"json_encode":        `p@ss w0rd\/+\"<*'~ü&x=1`,
	} {
		if got := s.String("<" + text + ">"); got != "<[secret]>" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestScrubReader(t *testing.T) {
	const v = "s3cr3t-value"
	var s Scrubber
	s.Add(v)
	text := "a" + v + "b" + v[:5] + "c" + v + v + " s3cr3 " + base64.StdEncoding.EncodeToString([]byte(v)) + v[:11]
	want := s.String(text)
	for name, r := range map[string]io.Reader{
		"whole": strings.NewReader(text), "byte": iotest.OneByteReader(strings.NewReader(text)), "half": iotest.HalfReader(strings.NewReader(text)),
		"err": iotest.DataErrReader(strings.NewReader(text)),
	} {
		got, err := io.ReadAll(s.Reader(r))
		if string(got) != want || err != nil {
			t.Errorf("%s: %q, want %q (%v)", name, got, want, err)
		}
	}
	broken := errors.New("broken")
	got, err := io.ReadAll(s.Reader(io.MultiReader(strings.NewReader("x"+v[:4]), iotest.ErrReader(broken))))
	if string(got) != "x"+v[:4] || err != broken {
		t.Errorf("%q, %v", got, err)
	}
}

func FuzzScrubReader(f *testing.F) {
	f.Add("secret-value", "x secret-value y", 3)
	f.Add("ababab", "abababababab", 1)
	f.Fuzz(func(t *testing.T, secret, text string, cut int) {
		if len(secret) > 100 || len(text) > 10_000 {
			return
		}
		var s Scrubber
		s.Add(secret)
		cut = min(max(cut, 0), len(text))
		got, err := io.ReadAll(s.Reader(io.MultiReader(strings.NewReader(text[:cut]), strings.NewReader(text[cut:]))))
		if err != nil {
			t.Fatal(err)
		}
		if len(secret) >= minSecret && strings.Contains(string(got), secret) && !strings.Contains(scrubbed, secret) && !crosses(secret) {
			t.Errorf("%q in %q", secret, got)
		}
	})
}

// crosses: a secret that overlaps the replacement's own text can come about
// anew at its edges, which says nothing about the secret.
func crosses(secret string) bool {
	for i := range scrubbed {
		if strings.HasPrefix(secret, scrubbed[i:]) || strings.HasSuffix(secret, scrubbed[:i+1]) {
			return true
		}
	}
	return false
}

func TestFileSecrets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := Vault{Store: fileSecrets(dir)}
	if _, err := s.Store.Get("a"); !errors.Is(err, abi.ErrNotFound) {
		t.Error(err)
	}
	for _, bad := range []string{"", "a b", "a__b", "_a", "x@y", strings.Repeat("a", 65), "a\n"} {
		if err := s.Set(bad, "long enough"); !errors.Is(err, abi.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := s.Set("a", "short"); !errors.Is(err, abi.ErrInvalid) {
		t.Error(err)
	}
	var group sync.WaitGroup
	for i := range 10 {
		group.Go(func() {
			if err := (&Vault{Store: fileSecrets(dir)}).Set(fmt.Sprint("name-", i), fmt.Sprint("value-", i)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	names, err := s.Store.Names()
	if len(names) != 10 || err != nil {
		t.Error(names, err)
	}
	if v, err := s.Store.Get("name-3"); v != "value-3" || err != nil {
		t.Error(v, err)
	}
	if err := s.Store.Delete("name-3"); err != nil {
		t.Error(err)
	}
	if err := s.Store.Delete("name-3"); !errors.Is(err, abi.ErrNotFound) {
		t.Error(err)
	}
	path := filepath.Join(dir, "secrets.json")
	if runtime.GOOS != "windows" {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Error(info.Mode(), err)
		}
		os.Chmod(path, 0o644)
		if _, err := s.Store.Get("name-1"); err == nil || !strings.Contains(err.Error(), "0600") {
			t.Error(err)
		}
		os.Chmod(path, 0o600)
	}
	os.WriteFile(path, []byte(`{"name-1": "value-1" oops`), 0o600)
	if _, err := s.Store.Get("name-1"); err == nil || strings.Contains(err.Error(), "value-1") {
		t.Error(err)
	}
}

func TestOpenWithoutBus(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems have a keyring of their own")
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	s := Open(t.TempDir())
	if err := s.Set("tok", "value-1"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.Store.Where(), "secrets.json") {
		t.Error(s.Store.Where())
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
	s = Open(t.TempDir())
	if err := s.Set("tok", "value-1"); err != nil {
		t.Errorf("a bus that does not answer: %v", err)
	}
}

func TestKeyringSecrets(t *testing.T) {
	keyring.MockInit() // the library's own stand-in for the system's service
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/mock")
	dir := t.TempDir()
	if err := fileSecrets(dir).Set("old", "from-the-file"); err != nil {
		t.Fatal(err)
	}
	s := Open(dir)
	if err := s.Set("new", "in-the-keyring"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"old": "from-the-file", "new": "in-the-keyring"} {
		if v, err := s.Store.Get(name); v != want || err != nil {
			t.Errorf("%s: %q, %v", name, v, err)
		}
	}
	if names, err := s.Store.Names(); strings.Join(names, " ") != "new old" || err != nil {
		t.Error(names, err)
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "secret-names.json")); bytes.Contains(data, []byte("in-the-keyring")) {
		t.Errorf("%s", data)
	}
	for _, name := range []string{"new", "old"} {
		if err := s.Store.Delete(name); err != nil {
			t.Error(err)
		}
		if _, err := s.Store.Get(name); !errors.Is(err, abi.ErrNotFound) {
			t.Error(err)
		}
	}
}
