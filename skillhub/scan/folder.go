package scan

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// notText are the endings of files that hold no prose. What else there is, is
// read as text.
var notText = []string{
	".wasm", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico", ".woff", ".woff2", ".ttf", ".otf", ".pdf", ".zip", ".gz",
	".mp3", ".mp4", ".wav", ".ogg", ".minisig",
}

// Folder reads the texts of an unpacked package. What is past MaxText or MaxAll
// is cut one byte later, so that Package tells it to be unread.
func Folder(dir fs.FS) ([]Text, error) {
	var out []Text
	left := MaxAll
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.Type().IsRegular() || slices.Contains(notText, strings.ToLower(path.Ext(name))) {
			return nil
		}
		f, err := dir.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		b, err := io.ReadAll(io.LimitReader(f, int64(min(left, MaxText))+1))
		if err != nil {
			return err
		}
		left = max(0, left-len(b))
		out = append(out, Text{name, string(b)})
		return nil
	})
	return out, err
}
