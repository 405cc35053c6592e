package scripted

import (
	"context"
	"fmt"

	"github.com/elfhost/elfhost/host/model"
)

// Provider opens scripts as models: "scripted/demo.toml".
type Provider struct {
	// Read gives the bytes of a script by what stands after the slash.
	Read func(name string) ([]byte, error)
}

// Name is "scripted".
func (p Provider) Name() string { return "scripted" }

// Models cannot list files.
func (p Provider) Models(context.Context) ([]model.Info, error) {
	return nil, &model.Error{Code: model.ErrUnsupported, Provider: p.Name(), Message: "scripts are named by their file"}
}

// Open reads and checks a script.
func (p Provider) Open(name string) (model.Model, error) {
	data, err := p.Read(name)
	if err != nil {
		return nil, fmt.Errorf("opening script %q: %w", name, err)
	}
	return Parse(name, data)
}
