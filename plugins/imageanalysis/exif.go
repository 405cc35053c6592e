package main

import (
	"bytes"
	"encoding/binary"
)

// segments calls yield for each marker of a JPEG before its first scan.
func segments(data []byte, yield func(marker byte, body []byte) bool) {
	for i := 2; i+4 <= len(data) && data[i] == 0xff; {
		marker, size := data[i+1], int(binary.BigEndian.Uint16(data[i+2:]))
		if marker == 0xff { // fill byte
			i++
			continue
		}
		if marker == 0xda || size < 2 || i+2+size > len(data) || !yield(marker, data[i+4:i+2+size]) {
			return
		}
		i += 2 + size
	}
}

// progressive reports whether a JPEG is of the kind that is refined scan by scan.
func progressive(data []byte) bool {
	found := false
	segments(data, func(marker byte, _ []byte) bool {
		found = found || marker == 0xc2
		return !found
	})
	return found
}

// exifOrientation returns the orientation that a camera wrote, 1 where there
// is none (Exif 2.3, tag 0x0112 of the first directory).
func exifOrientation(data []byte) int {
	orientation := 1
	segments(data, func(marker byte, body []byte) bool {
		tiff, ok := bytes.CutPrefix(body, []byte("Exif\x00\x00"))
		if marker != 0xe1 || !ok {
			return true
		}
		orientation = tiffOrientation(tiff)
		return false
	})
	return orientation
}

func tiffOrientation(tiff []byte) int {
	if len(tiff) < 8 {
		return 1
	}
	var order binary.ByteOrder
	switch string(tiff[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return 1
	}
	at := uint64(order.Uint32(tiff[4:]))
	if at+2 > uint64(len(tiff)) {
		return 1
	}
	entries := tiff[at+2:]
	for range order.Uint16(tiff[at:]) {
		if len(entries) < 12 {
			break
		}
		if order.Uint16(entries) == 0x0112 && order.Uint16(entries[2:]) == 3 {
			if o := int(order.Uint16(entries[8:])); o >= 1 && o <= 8 {
				return o
			}
			break
		}
		entries = entries[12:]
	}
	return 1
}
