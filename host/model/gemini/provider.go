// Package gemini speaks Google's Gemini API.
package gemini

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/model/internal/wire"
)

// Name of the provider.
const Name = "google"

const baseURL = "https://generativelanguage.googleapis.com/"

// Options say whom to reach and as whom.
type Options struct {
	Key     string
	BaseURL string       // empty: Google's own
	HTTP    *http.Client // from host/reach; nil: the default client
}

// Provider is an account.
type Provider struct {
	client *genai.Client
}

// New prepares a provider. It reaches for nothing.
func New(o Options) (*Provider, error) {
	if o.Key == "" { // the library would look into the environment
		return nil, &model.Error{Code: model.ErrAuth, Provider: Name, Message: "no key is set"}
	}
	if o.BaseURL == "" {
		o.BaseURL = baseURL
	}
	c, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		APIKey: o.Key, Backend: genai.BackendGeminiAPI,
		HTTPClient:  wire.Client(o.HTTP, wire.Transport{Provider: Name, Secrets: []string{o.Key}, Keep: true}),
		HTTPOptions: genai.HTTPOptions{BaseURL: o.BaseURL},
	})
	if err != nil {
		return nil, wire.Err(context.Background(), Name, err)
	}
	return &Provider{client: c}, nil
}

// Name is "google".
func (p *Provider) Name() string { return Name }

// Models lists what can generate content.
func (p *Provider) Models(ctx context.Context) ([]model.Info, error) {
	var out []model.Info
	for m, err := range p.client.Models.All(ctx) {
		if err != nil {
			return nil, wire.Err(ctx, Name, err)
		}
		if len(out) == 1000 {
			break
		}
		if slices.Contains(m.SupportedActions, "generateContent") {
			out = append(out, model.Info{
				ID: strings.TrimPrefix(m.Name, "models/"), Name: m.DisplayName,
				Window: int64(m.InputTokenLimit), MaxOutput: int64(m.OutputTokenLimit),
			})
		}
	}
	return out, nil
}

// Open gives the model with this identifier.
func (p *Provider) Open(id string) (model.Model, error) {
	return &Model{client: p.client, id: id}, nil
}

// Model is one model of Google's.
type Model struct {
	client *genai.Client
	id     string
}
