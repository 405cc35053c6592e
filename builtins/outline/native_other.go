//go:build !cgo

package outline

import (
	"context"
	"errors"
)

// native reports whether the worker parses a language: none in a build
// without cgo, where grammar packs serve all.
func native(string) bool { return false }

type parser struct{}

func (*parser) parse(context.Context, *language, []byte) (*tree, error) {
	return nil, errors.New("this build has no native parsers: it was made without cgo")
}
