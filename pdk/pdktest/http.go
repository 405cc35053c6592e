package pdktest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/pdk"
)

const maxRedirects = 5

func (h *Host) fetch(ctx context.Context, header json.RawMessage, body []byte) (any, []byte, error) {
	var req struct {
		Method    string     `json:"method"`
		URL       string     `json:"url"`
		Headers   pdk.Header `json:"headers"`
		TimeoutMS int64      `json:"timeout_ms"`
		MaxBytes  int64      `json:"max_bytes"`
		Redirect  string     `json:"redirect"`
	}
	if err := strict(header, &req); err != nil {
		return nil, nil, err
	}
	r, err := http.NewRequestWithContext(ctx, req.Method, h.reveal(req.URL), bytes.NewReader(body))
	if err != nil || r.URL.Scheme != "http" && r.URL.Scheme != "https" {
		return nil, nil, &pdk.Error{Op: "elf:net.http", Code: abi.ErrInvalid, Detail: fmt.Sprintf("%q is no http or https URL", req.URL)}
	}
	for name, values := range req.Headers {
		for _, v := range values {
			r.Header.Add(name, h.reveal(v))
		}
	}
	res, err := h.client(req.TimeoutMS, req.Redirect).Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	limit := req.MaxBytes
	if limit <= 0 {
		limit = abi.DefaultLimits().BytesIn
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err != nil {
		return nil, nil, err
	}
	cut := int64(len(data)) > limit
	if cut && req.MaxBytes <= 0 {
		return nil, nil, abi.ErrLimit
	}
	return map[string]any{
		"status": res.StatusCode, "url": h.hide(res.Request.URL.String()), "headers": res.Header, "truncated": cut,
	}, data[:min(int64(len(data)), limit)], nil
}

func (h *Host) client(timeoutMS int64, redirect string) *http.Client {
	return &http.Client{
		Transport: h.HTTP,
		Timeout:   time.Duration(timeoutMS) * time.Millisecond,
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if redirect == "manual" {
				return http.ErrUseLastResponse
			}
			if len(via) > maxRedirects {
				return fmt.Errorf("stopped after %d redirects", maxRedirects)
			}
			return nil
		},
	}
}

// A placeholder uses only characters that a URL leaves alone.
func placeholder(name string) string { return "elf-secret-" + name + "-placeholder" }

func (h *Host) reveal(s string) string {
	for name, value := range h.Secrets {
		s = strings.ReplaceAll(s, placeholder(name), value)
	}
	return s
}

func (h *Host) hide(s string) string {
	for name, value := range h.Secrets {
		if value != "" {
			s = strings.ReplaceAll(s, value, placeholder(name))
		}
	}
	return s
}
