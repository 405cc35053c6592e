package openai

import (
	"context"
	"strings"
)

// Window asks what the server says of a model's context, in tokens; 0: it does
// not say. Servers on people's machines give a model less than it could take,
// and their list does not tell: they are asked how they run it, which Ollama and
// LM Studio say once it is loaded.
func (p *Provider) Window(ctx context.Context, id string) (int64, error) {
	root := strings.TrimSuffix(p.opt.BaseURL, "/v1")
	switch p.opt.Name {
	case "ollama":
		var running struct {
			Models []struct {
				Model   string `json:"model"`
				Context int64  `json:"context_length"`
			} `json:"models"`
		}
		err := p.get(ctx, root+"/api/ps", &running)
		for _, m := range running.Models {
			if m.Model == id || m.Model == id+":latest" {
				return m.Context, err
			}
		}
		return 0, err
	case "lmstudio":
		var list struct {
			Data []struct {
				ID      string `json:"id"`
				Context int64  `json:"loaded_context_length"`
			} `json:"data"`
		}
		err := p.get(ctx, root+"/api/v0/models", &list)
		for _, m := range list.Data {
			if m.ID == id {
				return m.Context, err
			}
		}
		return 0, err
	case "llamacpp":
		var props struct {
			Defaults struct {
				Context int64 `json:"n_ctx"`
			} `json:"default_generation_settings"`
		}
		if err := p.get(ctx, root+"/props", &props); err == nil && props.Defaults.Context > 0 {
			return props.Defaults.Context, nil
		}
	}
	list, err := p.Models(ctx)
	for _, m := range list {
		if m.ID == id {
			return m.Window, err
		}
	}
	return 0, err
}
