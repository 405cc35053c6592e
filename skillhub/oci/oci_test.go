// Over 500 lines: hostile registries and honest ones answer through one server.

package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/reach/secret"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/pack"
)

// client is a Registry whose rights are what it asks for.
func client(t *testing.T) *Registry {
	t.Helper()
	h := &reach.HTTP{Secrets: secret.Open(t.TempDir())}
	t.Cleanup(func() { h.Close() })
	return &Registry{HTTP: h, Rights: func(want policy.Grant) (policy.Rights, error) {
		g, err := policy.New("test", want)
		return policy.Rights{Grants: g}, err
	}}
}

// inProcess starts a registry and returns its host.
func inProcess(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// packed is a package, ready to be pushed.
func packed(t *testing.T, version string) (Publication, []byte) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"elf.toml": "abi = \"elf/1\"\nname = \"greet\"\nversion = \"" + version + "\"\npublisher = \"acme\"\ndescription = \"Greets.\"\n", "SKILL.md": "---\nname: greet\n---\n# Greet\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	c, err := pack.Folder(t.Context(), &b, os.DirFS(dir), pack.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return Publication{Manifest: c.Manifest, Archive: bytes.NewReader(b.Bytes()), Digest: skillhub.DigestOf(b.Bytes()), Size: int64(b.Len())}, b.Bytes()
}

func ref(t *testing.T, s string) skillhub.Ref {
	t.Helper()
	r, err := skillhub.ParseRef(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func fetch(ctx context.Context, g *Registry, r skillhub.Ref) ([]byte, skillhub.Fetched, error) {
	var b bytes.Buffer
	f, err := g.Fetch(ctx, r, &b)
	return b.Bytes(), f, err
}

func TestPushAndFetch(t *testing.T) {
	host, g := inProcess(t), client(t)
	p, archive := packed(t, "1.2.0+x")
	at, err := g.Push(t.Context(), ref(t, "oci://"+host+"/acme/greet"), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []skillhub.Ref{at, ref(t, "oci://"+host+"/acme/greet:1.2.0_x")} {
		b, f, err := fetch(t.Context(), g, r)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b, archive) || f.Form != skillhub.Archive || f.Digest != p.Digest || f.Size != p.Size || f.Source != at.String() || f.Vouched == "" {
			t.Errorf("%s: %+v", r, f)
		}
		if again := ref(t, f.Source); again != at {
			t.Errorf("%q is read as %+v", f.Source, again)
		}
	}
	if now, err := g.Resolve(t.Context(), ref(t, "oci://"+host+"/acme/greet:1.2.0_x")); err != nil || now != at {
		t.Errorf("%v, %v", now, err)
	}
	if got := Place(at); got != "oci://"+host+"/acme/greet" {
		t.Errorf("%q", got)
	}
	// The same package again does nothing, another one under its tag is refused.
	p.Archive = bytes.NewReader(nil)
	if again, err := g.Push(t.Context(), ref(t, "oci://"+host+"/acme/greet"), p); err != nil || again != at {
		t.Errorf("%v, %v", again, err)
	}
	other, _ := packed(t, "1.3.0")
	if _, err := g.Push(t.Context(), ref(t, "oci://"+host+"/acme/greet:1.2.0_x"), other); !errors.Is(err, ErrTaken) {
		t.Errorf("%v", err)
	}
	other.Replace = true
	if _, err := g.Push(t.Context(), ref(t, "oci://"+host+"/acme/greet:1.2.0_x"), other); err != nil {
		t.Error(err)
	}
	if b, _, err := fetch(t.Context(), g, at); err != nil || !bytes.Equal(b, archive) {
		t.Errorf("a digest names other bytes now: %v", err)
	}
	if _, err := g.Push(t.Context(), at, other); err == nil {
		t.Error("a digest is published to")
	}
}

func TestNotThere(t *testing.T) {
	host, g := inProcess(t), client(t)
	if _, _, err := fetch(t.Context(), g, ref(t, "oci://"+host+"/no/such")); !errors.Is(err, skillhub.ErrNotFound) || !strings.Contains(err.Error(), host) {
		t.Errorf("%v", err)
	}
	g.Offline = "--offline was given"
	if _, _, err := fetch(t.Context(), g, ref(t, "oci://"+host+"/no/such")); !errors.Is(err, skillhub.ErrOffline) {
		t.Errorf("%v", err)
	}
	if _, err := g.Push(t.Context(), ref(t, "oci://"+host+"/a:b"), Publication{Manifest: &abi.Manifest{}}); !errors.Is(err, skillhub.ErrOffline) {
		t.Errorf("%v", err)
	}
}

func TestReferences(t *testing.T) {
	for text, want := range map[string]location{
		"oci://ghcr.io/acme/fetch":                 {"ghcr.io", "ghcr.io", "acme/fetch", "latest"},
		"oci://ghcr.io/acme/fetch:1.0":             {"ghcr.io", "ghcr.io", "acme/fetch", "1.0"},
		"oci://docker.io/fetch":                    {"docker.io", "registry-1.docker.io", "library/fetch", "latest"},
		"oci://127.0.0.1:5000/a/b/c:x":             {"127.0.0.1:5000", "127.0.0.1:5000", "a/b/c", "x"},
		"oci://[::1]:5000/a":                       {"[::1]:5000", "[::1]:5000", "a", "latest"},
		"oci://x.test/a:t@" + string(digestOf("")): {"x.test", "x.test", "a", string(digestOf(""))},
	} {
		if got, err := locate(ref(t, text)); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for host, scheme := range map[string]string{"127.0.0.1:5000": "http", "localhost": "http", "[::1]:5": "http", "ghcr.io": "https", "10.0.0.1:5000": "https", "localhost.evil.test": "https"} {
		if got := (location{host: host}).scheme(); got != scheme {
			t.Errorf("%s: %s", host, got)
		}
	}
	for _, text := range []string{"oci://ghcr.io/Acme/x", "oci://ghcr.io//x", "oci://ghcr.io/a/-x", "oci://ghcr.io/a:", "oci://ghcr.io/a:b:c", "oci://u:p@x.test/a", "oci://ghcr.io/a:" + strings.Repeat("x", 129), "oci://a b/c"} {
		r, err := skillhub.ParseRef(text)
		if err == nil {
			_, err = locate(r)
		}
		if err == nil {
			t.Errorf("%s is read", text)
		}
	}
}

func digestOf(s string) skillhub.Digest { return skillhub.DigestOf([]byte(s)) }

// fake is a registry that answers as it is told.
type fake struct {
	t         *testing.T
	blobs     map[string][]byte // by digest
	manifests map[string][]byte // by reference
	types     map[string]string
	before    func(http.ResponseWriter, *http.Request) bool // true: it was answered
	host      string
	asked     []string
}

func newFake(t *testing.T) *fake {
	f := &fake{t: t, blobs: map[string][]byte{}, manifests: map[string][]byte{}, types: map[string]string{}}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	f.host = strings.TrimPrefix(s.URL, "http://")
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.asked = append(f.asked, r.Method+" "+r.URL.Path)
	if f.before != nil && f.before(w, r) {
		return
	}
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	if b, ok := f.manifests[name]; ok && strings.Contains(r.URL.Path, "/manifests/") {
		typ := f.types[name]
		if typ == "" {
			typ = imageManifest
		}
		w.Header().Set("Content-Type", typ)
		w.Write(b)
		return
	}
	if b, ok := f.blobs[name]; ok && strings.Contains(r.URL.Path, "/blobs/") {
		w.Write(b)
		return
	}
	http.NotFound(w, r)
}

// layer puts a blob there and describes it.
func (f *fake) layer(typ string, b []byte) descriptor {
	d := skillhub.DigestOf(b)
	f.blobs[string(d)] = b
	return descriptor{MediaType: typ, Digest: string(d), Size: int64(len(b))}
}

// image puts a manifest there, by its digest and, if not empty, a tag.
func (f *fake) image(tag string, m manifest) skillhub.Ref {
	if m.SchemaVersion == 0 {
		m.SchemaVersion = 2
	}
	if m.MediaType == "" {
		m.MediaType = imageManifest
	}
	b, err := json.Marshal(m)
	if err != nil {
		f.t.Fatal(err)
	}
	d := skillhub.DigestOf(b)
	f.manifests[string(d)], f.types[string(d)] = b, m.MediaType
	if tag != "" {
		f.manifests[tag], f.types[tag] = b, m.MediaType
	}
	return skillhub.Ref{Kind: skillhub.OCI, Location: f.host + "/acme/x", Digest: d}
}

type file struct {
	name, body string
	typ        byte
}

func tarOf(t *testing.T, pack bool, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	var out io.Writer = &b
	z := gzip.NewWriter(&b)
	if pack {
		out = z
	}
	w := tar.NewWriter(out)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Typeflag: f.typ, Mode: 0o644, Size: int64(len(f.body))}
		if f.typ == 0 {
			h.Typeflag = tar.TypeReg
		} else {
			h.Size, h.Linkname = 0, f.body
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if f.typ == 0 {
			io.WriteString(w, f.body)
		}
	}
	w.Close()
	if pack {
		z.Close()
	}
	return b.Bytes()
}

const module = "\x00asm\x01\x00\x00\x00"

// What others put into registries: Wasm artifacts, and container images with
// /plugin.wasm.
func TestImagesOfOthers(t *testing.T) {
	f, g := newFake(t), client(t)
	const ociTar, dockerTar = "application/vnd.oci.image.layer.v1.tar", "application/vnd.docker.image.rootfs.diff.tar.gzip"
	for name, c := range map[string]struct {
		layers func() []descriptor
		want   string // the module, or part of the error
		bad    bool
	}{
		"CNCF":  {func() []descriptor { return []descriptor{f.layer("application/wasm", []byte(module))} }, module, false},
		"older": {func() []descriptor { return []descriptor{f.layer(moduleTypes[1], []byte(module))} }, module, false},
		"plain tar": {func() []descriptor {
			return []descriptor{f.layer(ociTar, tarOf(t, false, file{name: "plugin.wasm", body: module}))}
		}, module, false},
		"docker": {func() []descriptor {
			return []descriptor{f.layer(dockerTar, tarOf(t, true, file{name: "etc/", typ: tar.TypeDir}, file{name: "./plugin.wasm", body: module + "docker"}))}
		}, module + "docker", false},
		"the last layer counts": {func() []descriptor {
			return []descriptor{f.layer(dockerTar, tarOf(t, true, file{name: "plugin.wasm", body: module + "old"})), f.layer(dockerTar, tarOf(t, true, file{name: "plugin.wasm", body: module + "new"})),
				f.layer(ociTar, tarOf(t, false, file{name: "x", body: "x"}))}
		}, module + "new", false},
		"taken away": {func() []descriptor {
			return []descriptor{f.layer(dockerTar, tarOf(t, true, file{name: "plugin.wasm", body: module})), f.layer(dockerTar, tarOf(t, true, file{name: ".wh.plugin.wasm"}))}
		}, "holds neither", true},
		"a link": {func() []descriptor {
			return []descriptor{f.layer(ociTar, tarOf(t, false, file{name: "plugin.wasm", body: "/etc/passwd", typ: tar.TypeSymlink}))}
		}, "not a regular file", true},
		"no module": {func() []descriptor {
			return []descriptor{f.layer(ociTar, tarOf(t, false, file{name: "bin/plugin.wasm", body: module}))}
		}, "holds neither", true},
		"two modules": {func() []descriptor {
			return []descriptor{f.layer("application/wasm", []byte(module)), f.layer("application/wasm", []byte(module+"2"))}
		}, "2 Wasm modules", true},
		"zstd":   {func() []descriptor { return []descriptor{f.layer(ociTar, []byte("\x28\xb5\x2f\xfdxxxx"))} }, "zstd", true},
		"broken": {func() []descriptor { return []descriptor{f.layer(dockerTar, []byte("\x1f\x8bgarbage garbage"))} }, "layer", true},
		"odd":    {func() []descriptor { return []descriptor{f.layer("application/x-helm", []byte("x"))} }, "application/x-helm", true},
		"package and more": {func() []descriptor {
			return []descriptor{f.layer(LayerType, []byte("x")), f.layer("application/wasm", []byte(module))}
		}, "one layer", true},
		"nothing": {func() []descriptor { return nil }, "holds neither", true},
	} {
		b, got, err := fetch(t.Context(), g, f.image("", manifest{Layers: c.layers()}))
		switch {
		case c.bad && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v", name, err)
		case !c.bad && (err != nil || string(b) != c.want || got.Form != skillhub.Module || got.Digest != skillhub.DigestOf(b)):
			t.Errorf("%s: %q, %+v, %v", name, b, got, err)
		}
	}
}

func TestIndexes(t *testing.T) {
	f, g := newFake(t), client(t)
	image := func(body string, p *platform) descriptor {
		r := f.image("", manifest{Layers: []descriptor{f.layer("application/wasm", []byte(module+body))}})
		return descriptor{MediaType: imageManifest, Digest: string(r.Digest), Size: int64(len(f.manifests[string(r.Digest)])), Platform: p}
	}
	amd, arm, wasm := image("amd", &platform{"amd64", "linux"}), image("arm", &platform{"arm64", "linux"}), image("wasm", &platform{"wasm", "wasip1"})
	attested := arm
	attested.Annotations = map[string]string{"vnd.docker.reference.type": "attestation-manifest"}
	for want, list := range map[string][]descriptor{"wasm": {arm, amd, wasm}, "amd": {attested, arm, amd}, "arm": {arm}} {
		r := f.image("", manifest{MediaType: imageIndex, Manifests: list})
		b, got, err := fetch(t.Context(), g, r)
		if err != nil || string(b) != module+want || got.Source != r.String() {
			t.Errorf("%s: %q, %+v, %v", want, b, got, err)
		}
	}
	inner := f.image("", manifest{MediaType: imageIndex, Manifests: []descriptor{arm}})
	for _, list := range [][]descriptor{{attested}, {{MediaType: imageManifest, Digest: string(inner.Digest), Size: 1 << 19}}} {
		if _, _, err := fetch(t.Context(), g, f.image("", manifest{MediaType: imageIndex, Manifests: list})); err == nil {
			t.Errorf("%+v is read", list)
		}
	}
}

// TestHUB05DigestMismatch: whatever differs from what a digest promised is an
// error, and what was written by then counts for nothing.
func TestHUB05DigestMismatch(t *testing.T) {
	f, g := newFake(t), client(t)
	good := f.image("1.0", manifest{Layers: []descriptor{f.layer(LayerType, []byte("archive"))}})
	if _, _, err := fetch(t.Context(), g, good); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(f *fake, d descriptor, ref skillhub.Ref){
		"other bytes":    func(f *fake, d descriptor, _ skillhub.Ref) { f.blobs[d.Digest] = []byte("ARCHIVE") },
		"fewer bytes":    func(f *fake, d descriptor, _ skillhub.Ref) { f.blobs[d.Digest] = []byte("arch") },
		"other manifest": func(f *fake, d descriptor, r skillhub.Ref) { f.manifests[string(r.Digest)] = f.manifests["1.0"] },
	} {
		f := newFake(t)
		f.image("1.0", manifest{Layers: []descriptor{f.layer(LayerType, []byte("another"))}})
		d := f.layer(LayerType, []byte("archive"))
		r := f.image("", manifest{Layers: []descriptor{d}})
		spoil(f, d, r)
		if _, _, err := fetch(t.Context(), g, r); !errors.Is(err, skillhub.ErrMismatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A descriptor's size that is too small cuts, and the digest tells.
	d := f.layer(LayerType, []byte("archive"))
	d.Size = 3
	if _, _, err := fetch(t.Context(), g, f.image("", manifest{Layers: []descriptor{d}})); !errors.Is(err, skillhub.ErrMismatch) {
		t.Errorf("a smaller size: %v", err)
	}
	for _, bad := range []string{"sha256:../../x", "md5:abc", "sha512:" + strings.Repeat("a", 128), ""} {
		d.Digest = bad
		asked := len(f.asked)
		if _, _, err := fetch(t.Context(), g, f.image("", manifest{Layers: []descriptor{d}})); err == nil || len(f.asked) != asked+1 {
			t.Errorf("%q: %v, asked %q", bad, err, f.asked[asked:])
		}
	}
}

// A module from an image's layer counts only if the whole layer is what was
// promised, the part after the module too.
func TestHUB05LayerAfterTheModule(t *testing.T) {
	f, g := newFake(t), client(t)
	b := tarOf(t, false, file{name: "plugin.wasm", body: module}, file{name: "z", body: "zzzz"})
	d := f.layer(tarTypes[0], b)
	spoiled := bytes.Replace(b, []byte("zzzz"), []byte("yyyy"), 1)
	f.blobs[d.Digest] = spoiled
	if _, _, err := fetch(t.Context(), g, f.image("", manifest{Layers: []descriptor{d}})); !errors.Is(err, skillhub.ErrMismatch) {
		t.Errorf("%v", err)
	}
}

func TestBadManifests(t *testing.T) {
	f, g := newFake(t), client(t)
	r := skillhub.Ref{Kind: skillhub.OCI, Location: f.host + "/acme/x:t"}
	for text, want := range map[string]string{
		`{`:                   "not JSON",
		`{"schemaVersion":1}`: "schema version 1",
		`{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v1+json"}`:                                      "none that elfhost reads",
		`{"schemaVersion":2,"mediaType":"` + imageIndex + `"}`:                                                                        "calls the manifest",
		`{"schemaVersion":2,"manifests":[{}],"layers":[{}]}`:                                                                          "neither",
		`{"schemaVersion":2,"layers":[` + strings.Repeat(`{},`, 200) + `{}]}`:                                                         "more than 128",
		`{"schemaVersion":2,"layers":[{"mediaType":"application/wasm","digest":"` + string(digestOf("x")) + `","size":-1}]}`:          "-1 bytes",
		`{"schemaVersion":2,"layers":[{"mediaType":"application/wasm","digest":"` + string(digestOf("x")) + `","size":99999999999}]}`: "more than the",
		`"` + strings.Repeat("x", maxManifest+10) + `"`:                                                                               "over",
	} {
		f.manifests["t"] = []byte(text)
		if _, _, err := fetch(t.Context(), g, r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
}

// A registry that sends one on to a private address is not followed there, one
// that never ends is cut, and one that does not answer is left.
func TestHostileRegistries(t *testing.T) {
	secret := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a private address was reached") }))
	defer secret.Close()
	f, g := newFake(t), client(t)
	r := f.image("t", manifest{Layers: []descriptor{f.layer(LayerType, []byte("archive"))}})
	for _, part := range []string{"/manifests/", "/blobs/"} {
		f.before = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, part) {
				return false
			}
			http.Redirect(w, r, secret.URL+"/x", http.StatusTemporaryRedirect)
			return true
		}
		if _, _, err := fetch(t.Context(), g, r); !errors.Is(err, abi.ErrDenied) {
			t.Errorf("%s: %v", part, err)
		}
	}
	// A token service at a private address is not asked either.
	f.before = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("WWW-Authenticate", `Bearer realm="`+secret.URL+`/token",service="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
	if _, _, err := fetch(t.Context(), g, r); !errors.Is(err, abi.ErrDenied) {
		t.Errorf("a realm: %v", err)
	}
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		for range 1 << 10 { // more than it promised
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				break
			}
		}
		return true
	}
	if _, _, err := fetch(t.Context(), g, r); !errors.Is(err, skillhub.ErrMismatch) {
		t.Errorf("an endless blob: %v", err)
	}
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return true
			}
		}
	}
	if _, _, err := fetch(t.Context(), g, r); !errors.Is(err, abi.ErrTooLarge) {
		t.Errorf("an endless manifest: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done()
		return true
	}
	if _, _, err := fetch(ctx, g, r); !errors.Is(err, context.Canceled) {
		t.Errorf("a silent registry: %v", err)
	}
}

func TestUnpackingIsBounded(t *testing.T) {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	w := tar.NewWriter(z)
	w.WriteHeader(&tar.Header{Name: "zeros", Size: maxUnpacked * 2, Typeflag: tar.TypeReg})
	zeros := make([]byte, 1<<20)
	for range 2 * maxUnpacked / len(zeros) {
		w.Write(zeros)
	}
	w.Close()
	z.Close()
	f, g := newFake(t), client(t)
	if _, _, err := fetch(t.Context(), g, f.image("", manifest{Layers: []descriptor{f.layer(tarTypes[1], b.Bytes())}})); err == nil || !strings.Contains(err.Error(), "unpack to more than") {
		t.Errorf("%v", err)
	}
}

func TestWhatARegistrySaysIsOneLine(t *testing.T) {
	f, g := newFake(t), client(t)
	f.before = func(w http.ResponseWriter, r *http.Request) bool {
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, `{"errors":[{"code":"X","message":"no\u001b[31m\n%s"}]}`, strings.Repeat("long ", 1000))
		return true
	}
	_, _, err := fetch(t.Context(), g, ref(t, "oci://"+f.host+"/a"))
	if err == nil || strings.ContainsAny(err.Error(), "\n\x1b") || len(err.Error()) > 500 || !strings.Contains(err.Error(), "418") {
		t.Errorf("%q", err)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"schemaVersion":2,"mediaType":"`+imageManifest+`","layers":[{"mediaType":"application/wasm","digest":"sha256:00","size":1}]}`), imageManifest)
	f.Add([]byte(`{"schemaVersion":2,"manifests":[{"mediaType":"`+imageManifest+`","platform":{"architecture":"wasm"}}]}`), imageIndex+"; charset=utf-8")
	f.Fuzz(func(t *testing.T, b []byte, header string) {
		m, err := parseManifest(b, header)
		if err != nil {
			return
		}
		if m.isIndex() {
			_, _ = m.choose()
		}
		for _, l := range m.Layers {
			if c, err := l.check(100); err == nil && (!c.digest.Valid() || c.size < 0 || c.size > 100) {
				t.Errorf("%+v", c)
			}
		}
	})
}

func FuzzLayer(f *testing.F) {
	f.Add([]byte("\x1f\x8b\x08\x00"))
	f.Add(tarBytes("plugin.wasm", "x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var out bytes.Buffer
		left := int64(1 << 20)
		if found, err := moduleOf(bytes.NewReader(b), &out, &left); err == nil && !found && out.Len() > 0 {
			t.Errorf("%d bytes of nothing", out.Len())
		}
	})
}

func tarBytes(name, body string) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	w.WriteHeader(&tar.Header{Name: name, Size: int64(len(body)), Typeflag: tar.TypeReg})
	io.WriteString(w, body)
	w.Close()
	return b.Bytes()
}
