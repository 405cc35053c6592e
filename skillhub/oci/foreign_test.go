package oci

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/elfhost/elfhost/skillhub"
)

// distribution starts Debian's docker-registry on loopback, which wants the
// password of "me" if one is given.
func distribution(t *testing.T, secret string) string {
	t.Helper()
	bin, err := exec.LookPath("docker-registry")
	if err != nil {
		t.Skip("no docker-registry: this test runs a registry that others made (apt install docker-registry)")
	}
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := l.Addr().String()
	l.Close()
	config := fmt.Sprintf("version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: %s}, delete: {enabled: true}}\nhttp: {addr: %q}\n", dir, host)
	if secret != "" {
		hash, err := bcrypt.GenerateFromPassword([]byte(secret), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		users := filepath.Join(dir, "users")
		if err := os.WriteFile(users, append([]byte("me:"), hash...), 0o600); err != nil {
			t.Fatal(err)
		}
		config += fmt.Sprintf("auth: {htpasswd: {realm: x, path: %s}}\n", users)
	}
	file := filepath.Join(dir, "config.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command(bin, "serve", file)
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &out, []string{"OTEL_TRACES_EXPORTER=none"}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	for range 2000 {
		if resp, err := http.Get("http://" + host + "/v2/"); err == nil {
			resp.Body.Close()
			return host
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("docker-registry does not answer: %s", out.String())
	return ""
}

// skopeo runs the foreign client.
func skopeo(t *testing.T, args ...string) []byte {
	t.Helper()
	bin, err := exec.LookPath("skopeo")
	if err != nil {
		t.Skip("no skopeo: this test wants a client that others made (apt install skopeo)")
	}
	cmd := exec.CommandContext(t.Context(), bin, args...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		t.Fatalf("skopeo %s: %v\n%s", strings.Join(args, " "), err, complaints.String())
	}
	return out.Bytes()
}

// What elfhost publishes, others read, and what others copy to, elfhost reads.
func TestRealRegistryAndForeignClient(t *testing.T) {
	host, g := distribution(t, password), client(t)
	p, archive := packed(t, "1.2.0")
	at := ref(t, "oci://"+host+"/acme/greet")
	if _, err := g.Push(t.Context(), at, p); err == nil {
		t.Fatal("a registry that wants a log-in was pushed to without one")
	}
	auth := filepath.Join(t.TempDir(), "auth.json")
	skopeo(t, "login", "--tls-verify=false", "--authfile", auth, "-u", "me", "-p", password, host)
	b, err := os.ReadFile(auth)
	if err != nil {
		t.Fatal(err)
	}
	if g.Credentials, err = ParseCredentials(b); err != nil {
		t.Fatal(err)
	}
	pinned, err := g.Push(t.Context(), at, p)
	if err != nil {
		t.Fatal(err)
	}
	raw := skopeo(t, "inspect", "--raw", "--tls-verify=false", "--authfile", auth, "docker://"+host+"/acme/greet:1.2.0")
	if skillhub.DigestOf(raw) != pinned.Digest {
		t.Errorf("skopeo reads %s, published was %s", skillhub.DigestOf(raw), pinned.Digest)
	}
	var m manifest
	if err := json.Unmarshal(raw, &m); err != nil || m.ArtifactType != ArtifactType || m.Layers[0].MediaType != LayerType || m.Layers[0].Annotations["org.opencontainers.image.title"] != "greet-1.2.0.elfpkg" {
		t.Errorf("%s, %v", raw, err)
	}
	// skopeo carries it to another registry; the digest is the same there.
	second := distribution(t, "")
	skopeo(t, "copy", "--src-tls-verify=false", "--dest-tls-verify=false", "--src-authfile", auth, "docker://"+host+"/acme/greet:1.2.0", "docker://"+second+"/mirror/greet:1.2.0")
	got, f, err := fetch(t.Context(), g, skillhub.Ref{Kind: skillhub.OCI, Location: second + "/mirror/greet", Digest: pinned.Digest})
	if err != nil || !bytes.Equal(got, archive) || f.Digest != p.Digest {
		t.Errorf("from the mirror: %+v, %v", f, err)
	}
}

// An image of /plugin.wasm as docker or buildah make it, copied by skopeo from
// a layout on disk, in both forms of manifests.
func TestForeignImageOfAModule(t *testing.T) {
	host, g := distribution(t, ""), client(t)
	layout := t.TempDir()
	blob := func(b []byte) string {
		d := skillhub.DigestOf(b)
		dir := filepath.Join(layout, "blobs", "sha256")
		os.MkdirAll(dir, 0o755)
		if err := os.WriteFile(filepath.Join(dir, d.Hex()), b, 0o644); err != nil {
			t.Fatal(err)
		}
		return string(d)
	}
	plain, layer := tarOf(t, false, file{name: "plugin.wasm", body: module}), tarOf(t, true, file{name: "plugin.wasm", body: module})
	config := fmt.Appendf(nil, `{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[%q]},"config":{}}`, skillhub.DigestOf(plain))
	m, _ := json.Marshal(manifest{SchemaVersion: 2, MediaType: imageManifest,
		Config: &descriptor{MediaType: "application/vnd.oci.image.config.v1+json", Digest: blob(config), Size: int64(len(config))},
		Layers: []descriptor{{MediaType: tarTypes[1], Digest: blob(layer), Size: int64(len(layer))}}})
	index, _ := json.Marshal(manifest{SchemaVersion: 2, MediaType: imageIndex, Manifests: []descriptor{{MediaType: imageManifest, Digest: blob(m), Size: int64(len(m)),
		Annotations: map[string]string{"org.opencontainers.image.ref.name": "x"}}}})
	for name, b := range map[string][]byte{"index.json": index, "oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`)} {
		if err := os.WriteFile(filepath.Join(layout, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, format := range []string{"oci", "v2s2"} {
		skopeo(t, "copy", "--dest-tls-verify=false", "--format", format, "oci:"+layout+":x", "docker://"+host+"/other/plugin:"+format)
		got, f, err := fetch(t.Context(), g, ref(t, "oci://"+host+"/other/plugin:"+format))
		if err != nil || string(got) != module || f.Form != skillhub.Module {
			t.Errorf("%s: %q, %+v, %v", format, got, f, err)
		}
	}
}
