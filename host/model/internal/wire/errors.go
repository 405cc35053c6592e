package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
)

// Err makes what a vendor's library returned a *model.Error.
func Err(ctx context.Context, provider string, err error) error {
	if ctx.Err() != nil {
		return model.Cancelled(provider, ctx)
	}
	var known *model.Error
	if errors.As(err, &known) {
		if known.Provider == "" {
			known.Provider = provider
		}
		return known
	}
	e := &model.Error{Code: model.ErrMalformed, Provider: provider, Err: err}
	var at *url.Error
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var network net.Error
	switch {
	case errors.Is(err, abi.ErrDenied):
		e.Code, e.Message = model.ErrDenied, clean(inner(err).Error())
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.Code = model.ErrTruncated
	case errors.As(err, &at), errors.As(err, &network):
		e.Code, e.Message = model.ErrUnavailable, clean(inner(err).Error())
	case errors.As(err, &syntax), errors.As(err, &kind):
		e.Message = clean(err.Error())
	default:
		e.Message = clean(err.Error())
	}
	return e
}

// inner drops the URL from an error: a query may hold a key.
func inner(err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// vendor is the union of the shapes in which errors come.
type vendor struct {
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"`
	Message string          `json:"message"`
	Detail  json.RawMessage `json:"detail"`
	Status  string          `json:"status"`
	Error   json.RawMessage `json:"error"`
	Object  string          `json:"object"`
	Details []struct {
		Reason     string `json:"reason"`
		RetryDelay string `json:"retryDelay"`
	} `json:"details"`
	Metadata struct {
		Raw string `json:"raw"`
	} `json:"metadata"`
}

// inStream finds an error in an answer whose status was good.
func (t Transport) inStream(data []byte) *model.Error {
	if !bytes.Contains(data, []byte(`rror"`)) {
		return nil
	}
	var v vendor
	if json.Unmarshal(data, &v) != nil {
		return nil
	}
	plain := v.Type == "error" || v.Object == "error"
	if !plain && (len(v.Error) == 0 || string(v.Error) == "null") {
		return nil
	}
	return t.Parse(0, data)
}

// Parse makes an error of a status and the body that came with it. The
// status may be 0 where it says nothing.
func (t Transport) Parse(status int, body []byte) *model.Error {
	e := &model.Error{Provider: t.Provider, Status: status}
	var v vendor
	trimmed := bytes.TrimSpace(body)
	if list := []json.RawMessage(nil); json.Unmarshal(trimmed, &list) == nil && len(list) > 0 {
		trimmed = list[0] // Gemini answers with a list of one
	}
	if json.Unmarshal(trimmed, &v) == nil {
		v = unwrap(v)
		e.Message = v.Message
		if e.Message == "" {
			e.Message = strings.Trim(string(v.Detail), `"`)
		}
		if v.Metadata.Raw != "" {
			e.Message += ": " + v.Metadata.Raw
		}
		for _, d := range v.Details {
			if delay, err := time.ParseDuration(d.RetryDelay); err == nil && delay > 0 {
				e.RetryAfter = delay
			}
		}
	} else if len(trimmed) > 0 && utf8.Valid(trimmed) && trimmed[0] != '<' {
		e.Message = string(trimmed)
	}
	e.Message = t.redact(clean(e.Message))
	e.Code = sortOut(status, v, e.Message)
	return e
}

// unwrap takes the error out of its envelope; a bare string is a message.
func unwrap(v vendor) vendor {
	var in vendor
	var text string
	switch {
	case len(v.Error) == 0 || string(v.Error) == "null":
		return v
	case json.Unmarshal(v.Error, &text) == nil:
		v.Message = text
		return v
	case json.Unmarshal(v.Error, &in) == nil:
		return in
	}
	return v
}

// words decide before the status does: vendors use 400 and 429 for many
// things. The first that fits wins; all are lower case.
var words = []struct {
	code model.Code
	any  []string
}{
	{model.ErrWindow, []string{
		"context_length_exceeded", "exceed_context_size", "prompt is too long", "maximum context length", "context window",
		"exceeds the maximum number of tokens", "input token count", "request_too_large", "exceed context limit", "maximum prompt length",
	}},
	{model.ErrQuota, []string{"insufficient_quota", "credit balance", "billing_error", "billing_hard_limit", "insufficient credits", "spending limit"}},
	{model.ErrAuth, []string{
		"authentication_error", "permission_error", "invalid_api_key", "api_key_invalid", "api key not valid", "unauthenticated",
		"permission_denied", "incorrect api key", "invalid x-api-key",
	}},
	{model.ErrOverload, []string{"overloaded", "slow_down", "model is currently loading", "loading model", `"unavailable"`}},
	{model.ErrRateLimit, []string{"rate_limit", "resource_exhausted", "too many requests"}},
	{model.ErrNotFound, []string{"model_not_found", "not_found_error", "no such model"}},
	{model.ErrRequest, []string{"invalid_request_error", "invalid_argument", "invalid_prompt"}},
	{model.ErrServer, []string{"api_error", "server_error", "internal_error", "timeout_error"}},
}

// sortOut finds the code of an error.
func sortOut(status int, v vendor, message string) model.Code {
	text := strings.ToLower(strings.Join([]string{v.Type, string(v.Code), v.Status, message, reasons(v)}, " "))
	byStatus := fromStatus(status, string(v.Code))
	for _, w := range words {
		for _, s := range w.any {
			if !strings.Contains(text, s) {
				continue
			}
			if w.code == model.ErrRequest && byStatus != "" {
				return byStatus // OpenAI calls a bad key an invalid request, too
			}
			return w.code
		}
	}
	if byStatus != "" {
		return byStatus
	}
	return model.ErrServer
}

func reasons(v vendor) string {
	var b strings.Builder
	for _, d := range v.Details {
		b.WriteString(d.Reason + " ")
	}
	return b.String()
}

// fromStatus reads the status, or the number that some put into code.
func fromStatus(status int, code string) model.Code {
	if status == 0 {
		status, _ = strconv.Atoi(code)
	}
	switch {
	case status == 401 || status == 403:
		return model.ErrAuth
	case status == 402:
		return model.ErrQuota
	case status == 404:
		return model.ErrNotFound
	case status == 413:
		return model.ErrWindow
	case status == 429:
		return model.ErrRateLimit
	case status == 503 || status == 529:
		return model.ErrOverload
	case status == 408 || status >= 500 && status < 600:
		return model.ErrServer
	case status >= 300 && status < 500:
		return model.ErrRequest
	}
	return ""
}

// keys looks like a credential, also where it is quoted in part.
var keys = regexp.MustCompile(`(?i)\b(sk|rk|pk|xai|gsk|key|AIza)[-_A-Za-z0-9*.]{12,}|bearer\s+\S+`)

func (t Transport) redact(s string) string {
	for _, k := range t.Secrets {
		if k != "" {
			s = strings.ReplaceAll(s, k, "[key]")
		}
	}
	return keys.ReplaceAllString(s, "[key]")
}

// clean makes a text one bounded line.
func clean(s string) string {
	const most = 400
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	return s
}

// retryAfter reads how long to wait, from the header that RFC 9110 has
// (seconds or a date) and the finer one that some vendors add.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}

func requestID(h http.Header) string {
	for _, k := range []string{"Request-Id", "X-Request-Id"} {
		if v := clean(h.Get(k)); v != "" && len(v) <= 100 {
			return v
		}
	}
	return ""
}

// rate reads the limits that Anthropic and OpenAI (and those who follow them) send.
func rate(h http.Header, now time.Time) *model.RateLimit {
	for _, p := range [][2]string{{"anthropic-ratelimit-", ""}, {"x-ratelimit-", "x"}} {
		get := func(kind, what string) string {
			if p[1] == "" {
				return h.Get(p[0] + kind + "-" + what)
			}
			return h.Get(p[0] + what + "-" + kind)
		}
		r := model.RateLimit{
			Requests: number(get("requests", "remaining")), RequestsLimit: number(get("requests", "limit")),
			Tokens: number(get("tokens", "remaining")), TokensLimit: number(get("tokens", "limit")),
			RequestsReset: moment(get("requests", "reset"), now), TokensReset: moment(get("tokens", "reset"), now),
		}
		if r.Requests >= 0 || r.Tokens >= 0 {
			return &r
		}
	}
	return nil
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// moment reads an RFC 3339 time, or a duration from now.
func moment(s string, now time.Time) time.Time {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(d)
	}
	return time.Time{}
}
