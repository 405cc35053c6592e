// Package openai speaks OpenAI's Responses API, to xAI as well, and the Chat
// Completions API, to the many servers that follow it: OpenRouter, Ollama,
// llama.cpp, vLLM and any other base URL.
package openai

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/model/internal/wire"
)

// API is one of the two protocols.
type API string

// The protocols. The zero value means Responses at OpenAI and xAI themselves,
// and Chat everywhere else.
const (
	Responses API = "responses"
	Chat      API = "chat"
)

// Options say whom to reach and as whom. Nothing is read from the environment.
type Options struct {
	Name    string       // of the provider; empty: "openai". It decides on a vendor's own fields, see Vendors
	Key     string       // empty: none is sent
	BaseURL string       // with the "/v1"; empty: that of the vendor with this name
	API     API          //
	HTTP    *http.Client // from host/reach; nil: the default client
	// Extra fields for every request, over those that are sent anyway:
	// {"provider": {"order": ["…"]}} at OpenRouter, for example.
	Extra map[string]any
}

// Provider is an account, or a server.
type Provider struct {
	opt    Options
	client *sdk.Client
	http   *http.Client
	errors wire.Transport
}

// New prepares a provider. It reaches for nothing.
func New(o Options) *Provider {
	if o.Name == "" {
		o.Name = "openai"
	}
	if o.BaseURL == "" {
		for _, v := range Vendors() {
			if v.Name == o.Name {
				o.BaseURL = v.BaseURL
			}
		}
	}
	o.BaseURL = strings.TrimRight(o.BaseURL, "/")
	if o.API == "" {
		o.API = Chat
		if o.Name == "openai" && o.BaseURL == openAI || o.Name == "xai" && o.BaseURL == xAI {
			o.API = Responses
		}
	}
	t := wire.Transport{Provider: o.Name, Secrets: []string{o.Key}}
	p := &Provider{opt: o, http: wire.Client(o.HTTP, t), errors: t}
	config := sdk.DefaultConfig(o.Key)
	config.BaseURL, config.HTTPClient = o.BaseURL, p.http
	p.client = sdk.NewClientWithConfig(config)
	return p
}

// Name is as in the options.
func (p *Provider) Name() string { return p.opt.Name }

// Open gives the model with this identifier.
func (p *Provider) Open(id string) (model.Model, error) {
	if p.opt.API == Responses {
		return &responses{p: p, id: id}, nil
	}
	return &chat{p: p, id: id}, nil
}

// Models asks the server for its list. Its library would drop what some
// servers add about the window.
func (p *Provider) Models(ctx context.Context) ([]model.Info, error) {
	var list struct {
		Data []struct {
			ID      string `json:"id"`
			Name    string `json:"name"`
			Context int64  `json:"context_length"` // OpenRouter
			Max     int64  `json:"max_model_len"`  // vLLM
			Meta    struct {
				Context int64 `json:"n_ctx"` // llama.cpp
			} `json:"meta"`
			Top struct {
				Output int64 `json:"max_completion_tokens"`
			} `json:"top_provider"`
		} `json:"data"`
	}
	if err := p.get(ctx, p.opt.BaseURL+"/models", &list); err != nil {
		return nil, err
	}
	var out []model.Info
	for _, m := range list.Data {
		out = append(out, model.Info{ID: m.ID, Name: m.Name, Window: max(m.Context, m.Max, m.Meta.Context), MaxOutput: m.Top.Output})
	}
	return out, nil
}

// maxList bounds what a server says of its models, in bytes.
const maxList = 32 << 20

// get asks for JSON.
func (p *Provider) get(ctx context.Context, url string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return &model.Error{Code: model.ErrRequest, Provider: p.opt.Name, Message: "the base URL is not a URL"}
	}
	if p.opt.Key != "" {
		req.Header.Set("Authorization", "Bearer "+p.opt.Key)
	}
	res, err := p.http.Do(req)
	if err != nil {
		return wire.Err(ctx, p.opt.Name, err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxList))
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return wire.Err(ctx, p.opt.Name, err)
	}
	return nil
}
