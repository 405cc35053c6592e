package main

import (
	"encoding/base64"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxTitle = 200 // bytes
	maxText  = 600
	maxURL   = 2 << 10
)

// clean keeps the first results that lead to different pages, at most count.
// A search engine's redirect is replaced by where it leads; where that cannot
// be read, and for advertisements, the result is dropped.
func clean(found []result, count int) []result {
	var out []result
	seen := map[string]bool{}
	for _, r := range found {
		u := target(r.url)
		if u == nil || seen[key(u)] {
			continue
		}
		seen[key(u)] = true
		r.url = u.String()
		r.title, r.text, r.date = line(r.title, maxTitle), line(r.text, maxText), line(r.date, 40)
		if r.title == "" {
			r.title = u.Host
		}
		if out = append(out, r); len(out) == count {
			break
		}
	}
	return out
}

// redirects are the addresses at which search engines count clicks: host
// suffix, path, and the parameter that holds the target, if it is there.
var redirects = []struct{ host, path, param string }{
	{"duckduckgo.com", "/l/", "uddg"},
	{"duckduckgo.com", "/y.js", ""},
	{"google", "/url", "q"},
	{"google", "/url", "url"},
	{"google", "/aclk", ""},
	{"googleadservices.com", "/", ""},
	{"doubleclick.net", "/", ""},
	{"bing.com", "/ck/a", "u"},
	{"bing.com", "/aclick", ""},
	{"search.yahoo.com", "/", ""},
	{"baidu.com", "/link", ""},
	{"baidu.com", "/baidu.php", ""},
	{"yandex", "/clck/", ""},
	{"yandex", "/search/", ""},
	{"sogou.com", "/link", ""},
	{"so.com", "/link", ""},
	{"jina.ai", "/redirect", ""},
}

// target returns the page that a result leads to, or nil.
func target(s string) *url.URL {
	u := web(s)
	for range 3 { // a redirect to a redirect
		if u == nil {
			return nil
		}
		next, is := unwrap(u)
		if !is {
			return u
		}
		u = next
	}
	return nil
}

func unwrap(u *url.URL) (to *url.URL, is bool) {
	for _, r := range redirects {
		if !engine(u.Hostname(), r.host) || !strings.HasPrefix(u.EscapedPath()+"/", strings.TrimRight(r.path, "/")+"/") {
			continue
		}
		is = true
		if r.param == "" {
			continue
		}
		value := u.Query().Get(r.param)
		if code, ok := strings.CutPrefix(value, "a1"); ok && r.host == "bing.com" {
			data, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(code, "="))
			if err != nil {
				continue
			}
			value = string(data)
		}
		if to = web(value); to != nil {
			return to, true
		}
	}
	return nil, is
}

// engine matches a host with its suffix, or a name with any national domain
// (google.de, yandex.com.tr).
func engine(host, name string) bool {
	host = strings.TrimPrefix(strings.ToLower(host), "www.")
	if strings.Contains(name, ".") {
		return host == name || strings.HasSuffix(host, "."+name)
	}
	rest, ok := strings.CutPrefix(host, name+".")
	return ok && len(rest) <= len("com.tr") && strings.Count(rest, ".") <= 1
}

// web parses an address that a person could open.
func web(s string) *url.URL {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "//") {
		s = "https:" + s
	}
	u, err := url.Parse(s)
	if err != nil || len(s) > maxURL || u.Hostname() == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil
	}
	return u
}

// key is equal for addresses of one page.
func key(u *url.URL) string {
	q := u.Query()
	for name := range q {
		if strings.HasPrefix(name, "utm_") || name == "gclid" || name == "fbclid" || name == "msclkid" || name == "ref_src" {
			q.Del(name)
		}
	}
	host := strings.TrimPrefix(strings.ToLower(u.Host), "www.")
	return host + strings.TrimRight(u.EscapedPath(), "/") + "?" + q.Encode()
}

// line makes one line of text without mark-up or control characters.
func line(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return strings.TrimSpace(s[:limit]) + " …"
}
