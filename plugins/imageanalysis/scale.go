package main

import (
	"image"
	"image/color"
	"image/draw"
)

// scale returns the picture with no side longer than limit, each pixel the
// mean of those it stands for. It needs no memory but the result's: filters
// that keep a row of floating-point columns would not fit beside a photo.
func scale(src image.Image, limit int) *image.NRGBA {
	b := src.Bounds()
	w, h := b.Dx(), b.Dy()
	dw, dh := w, h
	if w >= h && w > limit {
		dw, dh = limit, max(1, h*limit/w)
	} else if h > w && h > limit {
		dw, dh = max(1, w*limit/h), limit
	}
	dst := image.NewNRGBA(image.Rect(0, 0, dw, dh))
	if dw == w && dh == h {
		draw.Draw(dst, dst.Bounds(), src, b.Min, draw.Src)
		return dst
	}
	from := reader(src)
	row := make([]sum, dw)
	column := make([]int, dw+1) // where in the source each begins
	for x := range column {
		column[x] = x * w / dw
	}
	for y := range dh {
		clear(row)
		y0, y1 := y*h/dh, max((y+1)*h/dh, y*h/dh+1)
		for sy := y0; sy < y1; sy++ {
			for x := range dw {
				for sx := column[x]; sx < max(column[x+1], column[x]+1); sx++ {
					row[x].add(from(b.Min.X+sx, b.Min.Y+sy))
				}
			}
		}
		for x := range dw {
			dst.SetNRGBA(x, y, row[x].mean())
		}
	}
	return dst
}

// reader returns a function for the pixels of src. The types that decoders
// return are read without an interface call or an allocation for each.
func reader(src image.Image) func(x, y int) color.NRGBA {
	switch src := src.(type) {
	case *image.YCbCr:
		return func(x, y int) color.NRGBA {
			ci := src.COffset(x, y)
			r, g, b := color.YCbCrToRGB(src.Y[src.YOffset(x, y)], src.Cb[ci], src.Cr[ci])
			return color.NRGBA{r, g, b, 255}
		}
	case *image.NRGBA:
		return src.NRGBAAt
	case *image.RGBA:
		return func(x, y int) color.NRGBA { return straight(src.RGBAAt(x, y)) }
	case *image.Paletted:
		table := make([]color.NRGBA, 256) // an index past the palette is transparent
		for i, c := range src.Palette {
			table[i] = color.NRGBAModel.Convert(c).(color.NRGBA)
		}
		return func(x, y int) color.NRGBA { return table[src.ColorIndexAt(x, y)] }
	case *image.Gray:
		return func(x, y int) color.NRGBA {
			g := src.GrayAt(x, y).Y
			return color.NRGBA{g, g, g, 255}
		}
	}
	return func(x, y int) color.NRGBA { return color.NRGBAModel.Convert(src.At(x, y)).(color.NRGBA) }
}

// straight undoes the multiplication by alpha.
func straight(c color.RGBA) color.NRGBA {
	a := uint32(c.A)
	if a == 255 || a == 0 {
		return color.NRGBA(c)
	}
	return color.NRGBA{uint8(uint32(c.R) * 255 / a), uint8(uint32(c.G) * 255 / a), uint8(uint32(c.B) * 255 / a), c.A}
}

// sum adds pixels, colours weighted by how opaque they are.
type sum struct{ r, g, b, a, n uint64 }

func (s *sum) add(c color.NRGBA) {
	a := uint64(c.A)
	s.r += uint64(c.R) * a
	s.g += uint64(c.G) * a
	s.b += uint64(c.B) * a
	s.a += a
	s.n++
}

func (s *sum) mean() color.NRGBA {
	if s.a == 0 {
		return color.NRGBA{}
	}
	half := s.a / 2
	return color.NRGBA{uint8((s.r + half) / s.a), uint8((s.g + half) / s.a), uint8((s.b + half) / s.a), uint8((s.a + s.n/2) / s.n)}
}

// upright applies an EXIF orientation, 1 to 8.
func upright(src *image.NRGBA, orientation int) *image.NRGBA {
	if orientation < 2 || orientation > 8 {
		return src
	}
	w, h := src.Rect.Dx(), src.Rect.Dy()
	dw, dh := w, h
	if orientation >= 5 {
		dw, dh = h, w
	}
	dst := image.NewNRGBA(image.Rect(0, 0, dw, dh))
	for y := range h {
		for x := range w {
			dx, dy := x, y
			switch orientation {
			case 2:
				dx = w - 1 - x
			case 3:
				dx, dy = w-1-x, h-1-y
			case 4:
				dy = h - 1 - y
			case 5:
				dx, dy = y, x
			case 6:
				dx, dy = h-1-y, x
			case 7:
				dx, dy = h-1-y, w-1-x
			case 8:
				dx, dy = y, w-1-x
			}
			dst.SetNRGBA(dx, dy, src.NRGBAAt(x, y))
		}
	}
	return dst
}

// onWhite is for JPEG, which knows no transparency.
func onWhite(src image.Image) image.Image {
	dst := image.NewRGBA(src.Bounds())
	draw.Draw(dst, dst.Rect, image.White, image.Point{}, draw.Src)
	draw.Draw(dst, dst.Rect, src, src.Bounds().Min, draw.Over)
	return dst
}
