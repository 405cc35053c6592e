package main

import (
	"context"
	"image"
	"image/color"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/plugintest"
)

// A photo of 12 megapixels fits the manifest's memory, a file needs a grant,
// and the model gets a picture.
func TestInSandbox(t *testing.T) {
	p := plugintest.Load(t, ".")
	photo := image.NewYCbCr(image.Rect(0, 0, 4000, 3000), image.YCbCrSubsampleRatio420)
	for i := range photo.Y {
		photo.Y[i] = uint8(i*7 ^ i>>9)
	}
	write(t, p, "photo.jpg", encoded(t, "jpeg", photo))
	flat := image.NewPaletted(image.Rect(0, 0, 4000, 3000), color.Palette{color.White, color.Black})
	write(t, p, "flat.png", encoded(t, "png", flat))
	write(t, p, "bomb.png", pngHeader(60_000, 60_000))
	var shown int
	p.Loader.Model = func(_ context.Context, _ policy.Rights, q sandbox.ModelRequest) (sandbox.ModelReply, error) {
		for _, c := range q.Messages[len(q.Messages)-1].Content {
			if c.Type == "image" {
				shown = len(c.Data)
			}
		}
		return sandbox.ModelReply{Text: "It is noise."}, nil
	}
	p.Loader.Env = func(name string) (string, bool) { return p.Dir, name == "ELFHOST_WORKSPACE" }
	all := []string{"fs.read /ws/**", "model 20k tokens", "env ELFHOST_WORKSPACE"}
	for _, name := range []string{"photo.jpg", filepath.Join(p.Dir, "flat.png")} {
		shown = 0
		r, receipt, err := p.Call("ImageAnalysis", args{Path: name, Query: "What is it?"}, all...)
		if err != nil || r.IsError || !strings.Contains(r.Text(), "It is noise.") || shown == 0 {
			t.Errorf("%s: %s, %v; %d bytes shown", name, r.Text(), err, shown)
		}
		t.Logf("%s: %v, %d MiB, %d bytes shown", name, receipt.Wall, receipt.Memory>>20, shown)
	}
	for name, want := range map[string]string{"bomb.png": "too much to decode", "../../etc/passwd": "There is no file", "none.png": "There is no file"} {
		if r, _, err := p.Call("ImageAnalysis", args{Path: name, Query: "q"}, all...); err != nil || !r.IsError || !strings.Contains(r.Text(), want) {
			t.Errorf("%s: %s, %v", name, r.Text(), err)
		}
	}
	if r, _, err := p.Call("ImageAnalysis", args{Path: "photo.jpg", Query: "q"}, "model 20k tokens"); err != nil || !r.IsError {
		t.Errorf("without a grant: %s, %v", r.Text(), err)
	}
}

func write(t *testing.T, p *plugintest.Plugin, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(p.Dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}
