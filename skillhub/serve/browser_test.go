package serve

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// browse loads a page in a real browser, and returns its document as it is
// after loading. What the browser says goes to the test's log.
func browse(t *testing.T, url string) string {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on this machine: the pages are not tested in a browser")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	dir := profile(t)
	cmd := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--user-data-dir="+dir, "--enable-logging=stderr", "--virtual-time-budget=2000", "--dump-dom", url)
	page, said := filepath.Join(dir, "page"), filepath.Join(dir, "said")
	for name, to := range map[string]*io.Writer{page: &cmd.Stdout, said: &cmd.Stderr} { // no pipes: processes that outlive it would hold them
		f, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		*to = f
	}
	err = cmd.Run()
	complaints, _ := os.ReadFile(said)
	if err != nil {
		t.Fatalf("chromium: %v\n%s", err, complaints)
	}
	for line := range strings.Lines(string(complaints)) {
		if strings.Contains(line, "CONSOLE") { // a script, a style or a resource that was refused
			t.Errorf("the browser complains: %s", line)
		}
	}
	out, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// profile is a folder for a browser, whose processes may write there for a
// moment after it has ended.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "elfhost-browser-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for end := time.Now().Add(time.Minute); os.RemoveAll(dir) != nil && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
		}
	})
	return dir
}

func TestPagesInBrowser(t *testing.T) {
	f := newServer(t)
	f.publish(t, archive(t, f.keys, "acme", "acme", "read-pdf", "1.0.0", "Reads <b>PDF</b> files"))
	f.publish(t, archive(t, f.keys, "acme", "acme", "read-pdf", "1.1.0", "Reads <b>PDF</b> files, and forms"))
	f.publish(t, archive(t, f.keys, "acme", "acme", "weather", "1.0.0", "Says <script>document.title='evil'</script> the weather"))
	if err := f.author.Yank(t.Context(), "read-pdf", "1.0.0", "loses pages"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.set.Refresh(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		path       string
		with, lack []string
	}{
		{"/?q=pdf", []string{`<a href="/p/read-pdf">read-pdf</a>`, "1.1.0", "signed by acme", "Reads &lt;b&gt;PDF&lt;/b&gt; files, and forms", "asks for nothing"}, []string{"/p/weather"}},
		{"/", []string{`href="/p/read-pdf"`, `href="/p/weather"`, "<title>Packages</title>"}, []string{"evil</title>"}},
		{"/p/read-pdf", []string{"<h1>read-pdf", "elfhost install ", "1.0.0", "withdrawn: loses pages", "sha256:", "--root " + string(f.root)}, nil},
		{"/p/absent", []string{"There is no package of this name."}, nil},
	} {
		got := browse(t, f.url+x.path)
		for _, w := range x.with {
			if !strings.Contains(got, w) {
				t.Errorf("%s lacks %q:\n%s", x.path, w, got)
			}
		}
		for _, w := range x.lack {
			if strings.Contains(got, w) {
				t.Errorf("%s has %q:\n%s", x.path, w, got)
			}
		}
	}
}
