// Package anthropic speaks the Messages API of Anthropic, and of servers that
// follow it.
package anthropic

import (
	"context"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/model/internal/wire"
)

// Name of the provider.
const Name = "anthropic"

// Options say whom to reach and as whom. Nothing is read from the environment.
type Options struct {
	Key     string       // sent as x-api-key
	Token   string       // or as a bearer token, where Key is empty
	BaseURL string       // empty: https://api.anthropic.com
	HTTP    *http.Client // from host/reach; nil: the default client
}

// Provider is an account, or a server.
type Provider struct {
	client sdk.Client
}

// New prepares a provider. It reaches for nothing.
func New(o Options) *Provider {
	opts := []option.RequestOption{
		option.WithoutEnvironmentDefaults(),
		option.WithoutOpenTelemetry(),
		option.WithMaxRetries(0), // model.Retry repeats, and shows it
		option.WithHTTPClient(wire.Client(o.HTTP, wire.Transport{Provider: Name, Secrets: []string{o.Key, o.Token}})),
	}
	if o.Key != "" {
		opts = append(opts, option.WithAPIKey(o.Key))
	} else if o.Token != "" {
		opts = append(opts, option.WithAuthToken(o.Token))
	}
	if o.BaseURL != "" {
		opts = append(opts, option.WithBaseURL(o.BaseURL))
	}
	return &Provider{client: sdk.NewClient(opts...)}
}

// Name is "anthropic".
func (p *Provider) Name() string { return Name }

// Models lists what the account may use, newest first.
func (p *Provider) Models(ctx context.Context) ([]model.Info, error) {
	var out []model.Info
	pages := p.client.Models.ListAutoPaging(ctx, sdk.ModelListParams{Limit: sdk.Int(100)})
	for pages.Next() && len(out) < 1000 {
		m := pages.Current()
		out = append(out, model.Info{ID: m.ID, Name: m.DisplayName, Window: m.MaxInputTokens, MaxOutput: m.MaxTokens})
	}
	if err := pages.Err(); err != nil {
		return nil, wire.Err(ctx, Name, err)
	}
	return out, nil
}

// Open gives the model with this identifier.
func (p *Provider) Open(id string) (model.Model, error) {
	return &Model{client: p.client, id: id}, nil
}

// Model is one model of the provider's.
type Model struct {
	client sdk.Client
	id     string
}
