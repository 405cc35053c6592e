package direct

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/pack"
)

func folder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "greet")
	os.MkdirAll(filepath.Join(dir, "references"), 0o755)
	for name, text := range map[string]string{
		"elf.toml": "abi = \"elf/1\"\nname = \"greet\"\nversion = \"1.0.0\"\n", "SKILL.md": "# Greet\n", "references/a.md": "a",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func fetch(s skillhub.Source, ref string) ([]byte, skillhub.Fetched, error) {
	r, err := skillhub.ParseRef(ref)
	if err != nil {
		return nil, skillhub.Fetched{}, err
	}
	var b bytes.Buffer
	f, err := s.Fetch(context.Background(), r, &b)
	return b.Bytes(), f, err
}

func TestFolderAndArchive(t *testing.T) {
	dir := folder(t)
	b, f, err := fetch(Files{Dir: filepath.Dir(dir)}, "./greet")
	if err != nil || f.Source != dir {
		t.Fatalf("a folder: %+v, %v", f, err)
	}
	file := filepath.Join(t.TempDir(), "greet-1.0.0.elfpkg")
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
	again, f, err := fetch(Files{}, file)
	if err != nil || !bytes.Equal(again, b) || f.Form != "" {
		t.Errorf("an archive: %+v, %v", f, err)
	}
	if _, _, err := fetch(Files{}, "/no/such/thing"); !errors.Is(err, skillhub.ErrNotFound) {
		t.Errorf("nothing: %v", err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "references", "l")); err != nil {
		t.Skip(err)
	}
	if _, _, err := fetch(Files{}, dir); !errors.Is(err, pack.ErrRefused) {
		t.Errorf("a folder with a link: %v", err)
	}
}

func TestFolderOfAnotherFormat(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "x.wasm"), []byte("\x00asm\x01\x00\x00\x00"), 0o644)
	os.WriteFile(filepath.Join(dir, "extism.json"), []byte("{}"), 0o644)
	b, _, err := fetch(Files{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := pack.Unpack(context.Background(), bytes.NewReader(b), nil, pack.Options{Foreign: true})
	if err != nil || len(c.Files) != 2 {
		t.Errorf("it was packed as %+v, %v", c, err)
	}
	if _, f, err := fetch(Files{}, filepath.Join(dir, "x.wasm")); err != nil || f.Form != skillhub.Module {
		t.Errorf("a module alone: %+v, %v", f, err)
	}
}

// web is a server that this package reaches like a person would have it.
func web(t *testing.T, h http.HandlerFunc) (*httptest.Server, Web) {
	srv := httptest.NewTLSServer(h)
	t.Cleanup(srv.Close)
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())
	client := &reach.HTTP{TLS: &tls.Config{RootCAs: pool}}
	t.Cleanup(func() { client.Close() })
	return srv, Web{HTTP: client, Rights: func(g policy.Grant) (policy.Rights, error) {
		gs, err := policy.New("test", g)
		return policy.Rights{Grants: gs}, err
	}}
}

func TestAddressWithDigest(t *testing.T) {
	body := []byte("bytes")
	srv, s := web(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/x.elfpkg":
			w.Write(body)
		case "/away":
			http.Redirect(w, r, "https://10.0.0.1/x.elfpkg", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	})
	good := "#sha256=" + skillhub.DigestOf(body).Hex()
	b, f, err := fetch(s, srv.URL+"/x.elfpkg"+good)
	if err != nil || !bytes.Equal(b, body) || f.Vouched == "" {
		t.Fatalf("%+v, %v", f, err)
	}
	if _, _, err := fetch(s, f.Source); err != nil {
		t.Errorf("its source cannot be fetched again: %v", err)
	}
	if _, _, err := fetch(s, srv.URL+"/x.elfpkg#sha256="+skillhub.DigestOf(nil).Hex()); !errors.Is(err, skillhub.ErrMismatch) {
		t.Errorf("other bytes: %v", err)
	}
	if _, _, err := fetch(s, srv.URL+"/no"+good); !errors.Is(err, skillhub.ErrNotFound) {
		t.Errorf("404: %v", err)
	}
	if _, _, err := fetch(s, srv.URL+"/away"+good); !errors.Is(err, abi.ErrDenied) {
		t.Errorf("a redirect to a private address: %v", err)
	}
}

func TestEndlessAnswer(t *testing.T) {
	srv, s := web(t, func(w http.ResponseWriter, r *http.Request) {
		chunk := make([]byte, 1<<20)
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	_, _, err := fetch(s, srv.URL+"/x#sha256="+skillhub.DigestOf(nil).Hex())
	if err == nil || !strings.Contains(err.Error(), "more than a package may have") {
		t.Errorf("an answer without end: %v", err)
	}
}
