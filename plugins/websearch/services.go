package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/pdk"
)

const (
	serviceTime = 12 * time.Second // so that all three fit the call's limit
	maxReply    = 2 << 20          // bytes
)

// tavily is POST /search of https://docs.tavily.com.
func tavily(ctx context.Context, query string, count int) ([]result, error) {
	key, err := secret(ctx, "tavily-api-key")
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string]any{"query": query, "max_results": count, "search_depth": "basic"})
	if err != nil {
		return nil, err
	}
	var reply struct {
		Results []struct {
			Title, URL, Content string
			Date                string `json:"published_date"`
		}
	}
	err = ask(ctx, pdk.Request{
		Method: "POST", URL: "https://api.tavily.com/search", Body: body,
		Header: pdk.Header{"Authorization": {"Bearer " + key}, "Content-Type": {"application/json"}},
	}, &reply)
	var out []result
	for _, r := range reply.Results {
		out = append(out, result{r.Title, r.URL, r.Content, r.Date})
	}
	return out, err
}

// jina is https://s.jina.ai without the pages' content.
func jina(ctx context.Context, query string, count int) ([]result, error) {
	key, err := secret(ctx, "jina-api-key")
	if err != nil {
		return nil, err
	}
	var reply struct {
		Data []struct {
			Title, URL, Description, Content, Date string
		}
	}
	err = ask(ctx, pdk.Request{
		URL:    "https://s.jina.ai/?q=" + url.QueryEscape(query) + "&num=" + strconv.Itoa(count),
		Header: pdk.Header{"Authorization": {"Bearer " + key}, "Accept": {"application/json"}, "X-Respond-With": {"no-content"}},
	}, &reply)
	var out []result
	for _, r := range reply.Data {
		text := r.Description
		if text == "" {
			text = r.Content
		}
		out = append(out, result{r.Title, r.URL, text, r.Date})
	}
	return out, err
}

// searxng is GET /search of an instance whose settings allow the format json.
func searxng(ctx context.Context, query string, _ int) ([]result, error) {
	base, err := pdk.Env(ctx, "SEARXNG_URL")
	if base = strings.TrimSpace(base); base == "" || err != nil {
		return nil, absent(err)
	}
	at, err := url.Parse(base)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, errors.New("SEARXNG_URL is not an http or https address")
	}
	at = at.JoinPath("search")
	at.RawQuery = url.Values{"q": {query}, "format": {"json"}}.Encode()
	var reply struct {
		Results []struct {
			Title, URL, Content string
			Date                string `json:"publishedDate"`
		}
	}
	err = ask(ctx, pdk.Request{URL: at.String(), Header: pdk.Header{"Accept": {"application/json"}}}, &reply)
	var out []result
	for _, r := range reply.Results {
		out = append(out, result{r.Title, r.URL, r.Content, r.Date})
	}
	return out, err
}

// secret returns a placeholder. A secret that nobody set means that the
// service is not configured.
func secret(ctx context.Context, name string) (string, error) {
	key, err := pdk.Secret(ctx, name)
	if err != nil {
		return "", absent(err)
	}
	return key, nil
}

// absent turns what a host says of a setting that it does not have into
// errNotConfigured. Nil is an empty setting.
func absent(err error) error {
	for _, code := range []error{nil, abi.ErrNotFound, abi.ErrDenied, abi.ErrUnsupported} {
		if errors.Is(err, code) {
			return errNotConfigured
		}
	}
	return err
}

// ask sends a request and decodes the JSON that answers it.
func ask(ctx context.Context, r pdk.Request, reply any) error {
	r.Timeout, r.MaxBytes = serviceTime, maxReply
	res, err := pdk.Fetch(ctx, r)
	if err != nil {
		return err
	}
	switch {
	case res.Status == 401 || res.Status == 403:
		return fmt.Errorf("refused the request (status %d): is the key right, and JSON enabled?", res.Status)
	case res.Status == 402 || res.Status == 429:
		return fmt.Errorf("the quota is used up or the rate too high (status %d)", res.Status)
	case res.Status != 200:
		return fmt.Errorf("answered with status %d", res.Status)
	case res.Truncated:
		return errors.New("answered with too much")
	}
	if err := json.Unmarshal(res.Body, reply); err != nil {
		return errors.New("answered with something that is not its JSON")
	}
	return nil
}
