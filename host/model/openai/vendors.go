package openai

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/elfhost/elfhost/host/model"
)

// Vendor is a known place that speaks this protocol.
type Vendor struct {
	Name    string
	BaseURL string
	KeyEnv  string // the variable that usually holds its key; empty: it wants none
	Local   bool   // a server on this machine
}

const (
	openAI = "https://api.openai.com/v1"
	xAI    = "https://api.x.ai/v1"
)

// Vendors lists the places that are known by name. Any other is reached by
// its base URL.
func Vendors() []Vendor {
	return []Vendor{
		{Name: "openai", BaseURL: openAI, KeyEnv: "OPENAI_API_KEY"},
		{Name: "xai", BaseURL: xAI, KeyEnv: "XAI_API_KEY"},
		{Name: "openrouter", BaseURL: "https://openrouter.ai/api/v1", KeyEnv: "OPENROUTER_API_KEY"},
		{Name: "deepseek", BaseURL: "https://api.deepseek.com/v1", KeyEnv: "DEEPSEEK_API_KEY"},
		{Name: "groq", BaseURL: "https://api.groq.com/openai/v1", KeyEnv: "GROQ_API_KEY"},
		{Name: "mistral", BaseURL: "https://api.mistral.ai/v1", KeyEnv: "MISTRAL_API_KEY"},
		{Name: "ollama", BaseURL: "http://127.0.0.1:11434/v1", Local: true},
		{Name: "llamacpp", BaseURL: "http://127.0.0.1:8080/v1", Local: true},
		{Name: "vllm", BaseURL: "http://127.0.0.1:8000/v1"},
		{Name: "lmstudio", BaseURL: "http://127.0.0.1:1234/v1"},
	}
}

// Local is a server that answered on this machine.
type Local struct {
	Vendor Vendor
	Models []model.Info // at least one
}

// Detect asks the local vendors for their models, all at once, and gives
// those that answered in time, in the order of Vendors. Whatever else listens
// on their ports has no list of models and is left out. client must be able
// to reach loopback; nil means the default one.
func Detect(ctx context.Context, client *http.Client) []Local {
	ctx, cancel := context.WithTimeout(ctx, 800*time.Millisecond)
	defer cancel()
	return detect(ctx, client, Vendors())
}

func detect(ctx context.Context, client *http.Client, vendors []Vendor) []Local {
	found := make([]Local, len(vendors))
	var wg sync.WaitGroup
	for i, v := range vendors {
		if !v.Local {
			continue
		}
		wg.Go(func() {
			models, err := New(Options{Name: v.Name, BaseURL: v.BaseURL, HTTP: client}).Models(ctx)
			if err == nil {
				found[i] = Local{Vendor: v, Models: models}
			}
		})
	}
	wg.Wait()
	var out []Local
	for _, l := range found {
		if len(l.Models) > 0 && l.Models[0].ID != "" {
			out = append(out, l)
		}
	}
	return out
}
