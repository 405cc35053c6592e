package main

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/gif"
	"image/jpeg"
	"image/png"
	"strings"

	_ "golang.org/x/image/webp"
)

const (
	maxPixels = 50 << 20  // of any picture: a bound on time
	maxMemory = 280 << 20 // bytes that decoding may take, below the manifest's memory
	maxSide   = 1568      // past it vision models scale down themselves
	maxSent   = 3 << 20   // bytes that are sent
	quality   = 85
)

// picture is ready for the model.
type picture struct {
	data []byte
	mime string
	what string // "JPEG, 4000x3000, sent as 1568x1176"
}

// prepare decodes a picture, turns it upright, scales it down and encodes it
// anew. The declared size is checked first: some bytes can declare gigabytes.
func prepare(data []byte) (picture, error) {
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return picture{}, undecodable(data, err)
	}
	name := strings.ToUpper(format)
	if format == "webp" {
		name = "WebP"
	}
	w, h := config.Width, config.Height
	if w <= 0 || h <= 0 || w > maxPixels/h || w*h > maxMemory/cost(format, config.ColorModel, data) {
		return picture{}, fmt.Errorf("this %s declares %dx%d pixels, which is too much to decode here. Scale it down first", name, w, h)
	}
	img, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return picture{}, fmt.Errorf("this %s is damaged: %w", name, err)
	}
	orientation := 1
	if format == "jpeg" {
		orientation = exifOrientation(data)
	}
	small := scale(img, maxSide)
	small = upright(small, orientation)
	p := picture{what: fmt.Sprintf("%s, %dx%d", name, w, h)}
	if b := small.Bounds(); b.Dx() != w || b.Dy() != h {
		p.what += fmt.Sprintf(", sent as %dx%d", b.Dx(), b.Dy())
	}
	p.data, p.mime, err = encode(small, format == "jpeg")
	return p, err
}

// cost is how many bytes for a pixel the decoder takes at its worst.
func cost(format string, m color.Model, data []byte) int {
	switch format {
	case "jpeg":
		if progressive(data) {
			return 16 // coefficients of all scans are kept
		}
		return 4
	case "gif":
		return 2
	case "png":
		if m == color.NRGBA64Model || m == color.RGBA64Model || m == color.Gray16Model {
			return 16 // interlaced
		}
		return 8
	}
	return 12
}

// encode prefers what keeps letters sharp, as long as it is small.
func encode(img image.Image, photo bool) ([]byte, string, error) {
	var b bytes.Buffer
	if !photo {
		enc := png.Encoder{CompressionLevel: png.BestSpeed}
		if err := enc.Encode(&b, img); err != nil {
			return nil, "", err
		}
		if b.Len() <= maxSent {
			return b.Bytes(), "image/png", nil
		}
		b.Reset()
	}
	err := jpeg.Encode(&b, onWhite(img), &jpeg.Options{Quality: quality})
	return b.Bytes(), "image/jpeg", err
}

// undecodable says what a file is instead.
func undecodable(data []byte, err error) error {
	head := data[:min(len(data), 256)]
	has := func(s string) bool { return bytes.Contains(bytes.ToLower(head), []byte(s)) }
	switch {
	case len(data) == 0:
		return errors.New("the file is empty")
	case !errors.Is(err, image.ErrFormat):
		return fmt.Errorf("the picture is damaged: %w", err)
	case has("<svg"):
		return errors.New("this is SVG, which is text: use Read")
	case has("ftypheic"), has("ftypheif"), has("ftypmif1"), has("ftypavif"):
		return errors.New("this is HEIC or AVIF, which cannot be decoded here. Convert it to PNG or JPEG first")
	}
	return errors.New("this is not a PNG, JPEG, GIF or WebP picture")
}
