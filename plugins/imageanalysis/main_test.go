package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/pdk"
	"github.com/elfhost/elfhost/pdk/pdktest"
)

// gradient is dark on the left and bright on the right, with a red corner at
// the top left.
func gradient(w, h int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			v := uint8(255 * x / w)
			img.SetNRGBA(x, y, color.NRGBA{v, v, v, 255})
		}
	}
	for y := range h / 4 {
		for x := range w / 4 {
			img.SetNRGBA(x, y, color.NRGBA{255, 0, 0, 255})
		}
	}
	return img
}

func encoded(t *testing.T, format string, img image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch format {
	case "png":
		err = png.Encode(&b, img)
	case "jpeg":
		err = jpeg.Encode(&b, img, nil)
	case "gif":
		err = gif.Encode(&b, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// webp is a lossless picture of one pixel.
var webp = []byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00")

// look runs the tool on a file, and returns what the model was shown.
func look(t *testing.T, data []byte) (abi.Result, *pdk.Prompt) {
	t.Helper()
	h := pdktest.New(t)
	var seen *pdk.Prompt
	h.Model = func(_ context.Context, p pdk.Prompt) (pdk.Completion, error) {
		seen = &p
		return pdk.Completion{Text: "A gradient.", Model: "eye-1"}, nil
	}
	if err := os.WriteFile(filepath.Join(h.Dir, "a.img"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return h.Call("ImageAnalysis", args{Path: "a.img", Query: "What is it?"}), seen
}

func TestFormats(t *testing.T) {
	for format, c := range map[string]struct {
		data []byte
		mime string
		what string
	}{
		"png":       {encoded(t, "png", gradient(40, 30)), "image/png", "PNG, 40x30"},
		"jpeg":      {encoded(t, "jpeg", gradient(40, 30)), "image/jpeg", "JPEG, 40x30"},
		"gif":       {encoded(t, "gif", gradient(40, 30)), "image/png", "GIF, 40x30"},
		"webp":      {webp, "image/png", "WebP, 1x1"},
		"large png": {encoded(t, "png", gradient(3000, 2000)), "image/png", "PNG, 3000x2000, sent as 1568x1045"},
		"tall jpeg": {encoded(t, "jpeg", gradient(200, 4000)), "image/jpeg", "JPEG, 200x4000, sent as 78x1568"},
	} {
		t.Run(format, func(t *testing.T) {
			r, seen := look(t, c.data)
			if want := "A gradient.\n\n(/ws/a.img: " + c.what + "; seen by eye-1)"; r.IsError || r.Text() != want {
				t.Fatalf("%s\nwant %s", r.Text(), want)
			}
			if len(seen.Images) != 1 || seen.Images[0].MIMEType != c.mime || seen.Messages[0].Content != "What is it?" {
				t.Errorf("%+v", seen.Messages)
			}
			if _, _, err := image.Decode(bytes.NewReader(seen.Images[0].Data)); err != nil {
				t.Errorf("what the model got is no picture: %v", err)
			}
		})
	}
}

func TestScaleIsAMean(t *testing.T) {
	got := scale(gradient(3000, 1500), 100)
	if got.Rect.Dx() != 100 || got.Rect.Dy() != 50 {
		t.Fatal(got.Rect)
	}
	for x, want := range map[int]int{30: 78, 50: 128, 99: 253} {
		if v := int(got.NRGBAAt(x, 40).R); v < want-2 || v > want+2 {
			t.Errorf("column %d is %d, want %d", x, v, want)
		}
	}
	if c := got.NRGBAAt(2, 2); c != (color.NRGBA{255, 0, 0, 255}) {
		t.Errorf("the corner is %v", c)
	}
	// What is transparent does not darken its neighbours.
	half := image.NewNRGBA(image.Rect(0, 0, 2, 1))
	half.SetNRGBA(0, 0, color.NRGBA{200, 100, 50, 255})
	if c := scale(half, 1).NRGBAAt(0, 0); c != (color.NRGBA{200, 100, 50, 128}) {
		t.Errorf("half transparent: %v", c)
	}
}

// Every type that a decoder returns is read the same way.
func TestReader(t *testing.T) {
	at := image.Pt(3, 2)
	want := color.NRGBA{90, 90, 90, 255}
	r := image.Rect(1, 1, 9, 7)
	pal := image.NewPaletted(r, color.Palette{color.Black, want})
	ycc, gray, rgba, wide := image.NewYCbCr(r, image.YCbCrSubsampleRatio420), image.NewGray(r), image.NewRGBA(r), image.NewNRGBA64(r)
	for i := range ycc.Y {
		ycc.Y[i] = 90
	}
	for i := range ycc.Cb {
		ycc.Cb[i], ycc.Cr[i] = 128, 128
	}
	pal.SetColorIndex(at.X, at.Y, 1)
	gray.SetGray(at.X, at.Y, color.Gray{90})
	rgba.Set(at.X, at.Y, want)
	wide.Set(at.X, at.Y, want)
	for _, img := range []image.Image{pal, ycc, gray, rgba, wide} {
		if got := reader(img)(at.X, at.Y); got != want {
			t.Errorf("%T: %v", img, got)
		}
	}
}

func TestOrientation(t *testing.T) {
	var exif bytes.Buffer
	exif.WriteString("Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00")
	plain := encoded(t, "jpeg", gradient(64, 32))
	turned := append([]byte{0xff, 0xd8, 0xff, 0xe1, 0, byte(exif.Len() + 2)}, exif.Bytes()...)
	turned = append(turned, plain[2:]...)
	_, seen := look(t, turned)
	img, _, err := image.Decode(bytes.NewReader(seen.Images[0].Data))
	if err != nil {
		t.Fatal(err)
	}
	// 6: the top left corner of what was stored belongs at the top right.
	if b := img.Bounds(); b.Dx() != 32 || b.Dy() != 64 {
		t.Fatalf("bounds %v", b)
	}
	if r, g, _, _ := img.At(29, 3).RGBA(); r < 0xd000 || g > 0x4000 {
		t.Errorf("the corner is %v", img.At(29, 3))
	}
	if bytes.Contains(seen.Images[0].Data, []byte("Exif")) {
		t.Error("metadata was sent")
	}
	if o := exifOrientation(plain); o != 1 {
		t.Errorf("no metadata: %d", o)
	}
}

func TestUpright(t *testing.T) {
	src := image.NewNRGBA(image.Rect(0, 0, 3, 2))
	for i := range 6 {
		src.SetNRGBA(i%3, i/3, color.NRGBA{uint8(i), 0, 0, 255})
	}
	for o, want := range []string{1: "012345", 2: "210543", 3: "543210", 4: "345012", 5: "031425", 6: "304152", 7: "524130", 8: "251403"} {
		if o == 0 {
			continue
		}
		got, out := upright(src, o), ""
		for y := range got.Rect.Dy() {
			for x := range got.Rect.Dx() {
				out += string(rune('0' + got.NRGBAAt(x, y).R))
			}
		}
		if out != want {
			t.Errorf("orientation %d: %s, want %s", o, out, want)
		}
	}
}

// pngHeader declares a size and has no pixels.
func pngHeader(w, h uint32) []byte {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte("IHDR"), w), h)
	head = append(head, 8, 6, 0, 0, 0)
	out := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), head...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(head))
}

func TestBadPictures(t *testing.T) {
	whole := encoded(t, "png", gradient(40, 30))
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"bomb":      {pngHeader(60_000, 60_000), "declares 60000x60000 pixels, which is too much"},
		"long bomb": {pngHeader(2_000_000_000, 1), "which is too much"},
		"gif bomb":  {[]byte("GIF89a\xff\xff\xff\xff\x00\x00\x00"), "declares 65535x65535"},
		"cut":       {whole[:len(whole)/2], "this PNG is damaged"},
		"empty":     {nil, "the file is empty"},
		"text":      {[]byte("hello"), "not a PNG, JPEG, GIF or WebP"},
		"svg":       {[]byte("<?xml version='1.0'?><SVG>"), "use Read"},
		"heic":      {[]byte("\x00\x00\x00\x18ftypheic"), "Convert it to PNG or JPEG"},
		"large":     {make([]byte, maxFile+1), "reads up to 24 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			r, seen := look(t, c.data)
			if !r.IsError || !strings.Contains(r.Text(), c.want) || seen != nil {
				t.Errorf("no %q in %q", c.want, r.Text())
			}
		})
	}
}

func TestTwelveMegapixelsFit(t *testing.T) {
	for format, img := range map[string]image.Image{"jpeg": image.NewGray(image.Rect(0, 0, 4000, 3000)), "png": image.NewGray(image.Rect(0, 0, 4000, 3000))} {
		if r, _ := look(t, encoded(t, format, img)); r.IsError {
			t.Errorf("%s: %s", format, r.Text())
		}
	}
	if n := maxMemory / cost("jpeg", color.YCbCrModel, []byte("\xff\xd8\xff\xc2\x00\x02\xff\xda\x00\x02")); n < 12_000_000 {
		t.Errorf("a progressive JPEG may have %d pixels only", n)
	}
}

func TestLocate(t *testing.T) {
	for _, c := range []struct{ name, cwd, root, want string }{
		{"a.png", "", "", "/ws/a.png"},
		{"./x/../a.png", "", "", "/ws/a.png"},
		{"/ws/a.png", "", "", "/ws/a.png"},
		{"a.png", "docs", "", "/ws/docs/a.png"},
		{"a.png", "/ws/docs", "", "/ws/docs/a.png"},
		{"a.png", "/home/u/proj/docs", "/home/u/proj", "/ws/docs/a.png"},
		{"/home/u/proj/a.png", "", "/home/u/proj/", "/ws/a.png"},
		{"file:///home/u/proj/a%20b.png", "", "/home/u/proj", "/ws/a b.png"},
		{`C:\proj\img\a.png`, "", `C:\proj`, "/ws/img/a.png"},
		{"file:///C:/proj/a.png", "", `C:\proj`, "/ws/a.png"},
		{"/home/u/project/a.png", "", "/home/u/proj", ""},
		{"/etc/passwd", "", "", ""},
		{"/ws/../etc/passwd", "", "", ""},
		{"file://host/a.png", "", "", ""},
		{"a.png", "/etc", "", ""},
		{" ", "", "", ""},
	} {
		got, err := locate(c.name, c.cwd, c.root)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("locate(%q, %q, %q) = %q, %v", c.name, c.cwd, c.root, got, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	h := pdktest.New(t)
	h.Env = map[string]string{}
	if err := os.WriteFile(filepath.Join(h.Dir, "a.png"), encoded(t, "png", gradient(4, 4)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(h.Dir, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, query, want string }{
		{"a.png", " ", "needs a query"},
		{"b.png", "q", "There is no file /ws/b.png."},
		{"d", "q", "is a folder"},
		{"a.png", "q", "PNG, 4x4, but no model is available that can look at it."},
	} {
		if r := h.Call("ImageAnalysis", args{Path: c.path, Query: c.query}); !r.IsError || !strings.Contains(r.Text(), c.want) {
			t.Errorf("no %q in %q", c.want, r.Text())
		}
	}
}

func FuzzPrepare(f *testing.F) {
	f.Add(webp)
	f.Add(pngHeader(3, 3))
	f.Add([]byte("\xff\xd8\xff\xe1\x00\x10Exif\x00\x00MM\x00*\x00\x00\x00\x08"))
	f.Add([]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, _, err := image.DecodeConfig(bytes.NewReader(data)); err == nil && c.Width*c.Height > 1<<20 {
			return // slow, not interesting
		}
		p, err := prepare(data)
		if (err == nil) != (len(p.data) > 0) {
			t.Errorf("%d bytes, %v", len(p.data), err)
		}
	})
}
