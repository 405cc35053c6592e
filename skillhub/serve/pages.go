package serve

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/skillhub"
)

//go:embed pages
var pages embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{"show": show, "date": date}).ParseFS(pages, "pages/*.html"))

// page is what the templates are given. The texts in it are strangers'.
type page struct {
	Title, Query, Problem string
	Front                 bool // nothing was asked yet
	Host, URL, HubName    string
	Root                  skillhub.Digest

	Results  []skillhub.Listing
	Newest   *skillhub.Listing
	Versions []skillhub.Listing // newest first
}

// show makes visible what would hide, reorder or imitate text on a page.
func show(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t':
			b.WriteByte(' ')
		case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp), r == 0x3164, r == 0x115f, r == 0x1160, r == 0xffa0,
			r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef:
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// host is what a page may say of how it was reached: whoever asks can write
// anything there.
var host = regexp.MustCompile(`^([A-Za-z0-9.-]{1,253}|\[[0-9a-fA-F:]{2,45}\])(:[0-9]{1,5})?$`)

func (s *Server) page(r *http.Request) page {
	p := page{Title: "Packages", Root: s.hub.Root, URL: s.o.URL, HubName: "hub"}
	if p.URL == "" && host.MatchString(r.Host) {
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		p.URL = scheme + "://" + r.Host
	}
	_, p.Host, _ = strings.Cut(p.URL, "://")
	if p.Host == "" {
		p.Host = "hub"
	}
	// A name for the hub that a person may take over: the first label of its host.
	label, _, _ := strings.Cut(strings.TrimPrefix(p.Host, "www."), ".")
	if abi.CheckName(label) == nil {
		p.HubName = label
	}
	return p
}

func (s *Server) searchPage(w http.ResponseWriter, r *http.Request) {
	p := s.page(r)
	p.Query = r.URL.Query().Get("q")
	if len(p.Query) > maxQuery {
		p.Query = p.Query[:maxQuery]
	}
	p.Front = p.Query == ""
	var err error
	if p.Results, err = s.search(r, onPage); err != nil {
		s.log("%v", err)
		p.Problem = "The hub cannot be searched now."
		s.render(w, http.StatusInternalServerError, "search", p)
		return
	}
	s.render(w, http.StatusOK, "search", p)
}

func (s *Server) packagePage(w http.ResponseWriter, r *http.Request) {
	p := s.page(r)
	d, err := s.document(r)
	if err != nil {
		status := http.StatusInternalServerError
		p.Title, p.Problem = "Not available", "The hub cannot answer now."
		if errors.Is(err, skillhub.ErrNotFound) {
			status, p.Title, p.Problem = http.StatusNotFound, "No such package", "There is no package of this name."
		} else {
			s.log("%v", err)
		}
		s.render(w, status, "problem", p)
		return
	}
	p.Title = d.Name
	p.Versions = slices.Clone(d.Versions)
	slices.SortStableFunc(p.Versions, func(a, b skillhub.Listing) int { return skillhub.CompareVersions(b.Version, a.Version) })
	if l, err := d.Find(""); err == nil {
		p.Newest = &l
	}
	s.render(w, http.StatusOK, "package", p)
}

func (s *Server) render(w http.ResponseWriter, status int, name string, p page) {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, p); err != nil {
		s.log("the page %s: %v", name, err)
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the client may be gone
}

func (s *Server) style(w http.ResponseWriter, r *http.Request) {
	b, err := pages.ReadFile("pages/style.css")
	if err != nil {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/css; charset=utf-8")
	h.Set("Cache-Control", "public, max-age=3600")
	_, _ = w.Write(b)
}
