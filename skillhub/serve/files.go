package serve

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/hub"
)

// The names of a hub's files. Nothing else of the folder is served.
var (
	moving   = regexp.MustCompile(`^metadata/(timestamp|root)\.json$`)
	fixed    = regexp.MustCompile(`^(metadata/[0-9]{1,18}\.(root|snapshot|targets|packages-[0-9a-f]{1,4})\.json|index/[0-9a-f]{64}\.packages\.index)$`)
	document = regexp.MustCompile(`^packages/([a-z0-9-]{1,64})/([0-9a-f]{64})\.versions\.json$`)
	blob     = regexp.MustCompile(`^blobs/sha256/[0-9a-f]{2}/([0-9a-f]{64})$`)
)

// file serves a file of the hub. Most never change under their names.
func (s *Server) file(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	kind, cache := "application/json", "public, max-age=31536000, immutable"
	var about []string
	switch {
	case blob.MatchString(name):
		kind, about = "application/octet-stream", blob.FindStringSubmatch(name)
	case document.MatchString(name):
		about = document.FindStringSubmatch(name)
	case moving.MatchString(name):
		cache = "no-cache"
	case fixed.MatchString(name):
		if strings.HasPrefix(name, "index/") {
			kind = "application/octet-stream"
		}
	default:
		http.NotFound(w, r)
		return
	}
	f, err := s.root.Open(name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Cache-Control", cache)
	if r.Method == http.MethodGet && r.Header.Get("Range") == "" {
		switch len(about) {
		case 3:
			s.installs.learn(about[1], about[2], f)
		case 2:
			s.installs.count(about[1])
		}
	}
	http.ServeContent(w, r, path.Base(name), st.ModTime(), f)
}

// installs counts archives that were fetched, by package. Which archive belongs
// to which package is learnt from the documents that clients read before.
type installs struct {
	mu    sync.Mutex
	names map[string]string // digest of an archive → name
	seen  map[string]bool   // digests of documents that were learnt from
	n     map[string]int64
	dirty bool
}

// maxLearnt bounds what is remembered; beyond it, all is learnt anew.
const maxLearnt = 500_000

func (i *installs) load(a *hub.Author) (err error) {
	i.names, i.seen = map[string]string{}, map[string]bool{}
	if i.n, err = a.Installs(); i.n == nil {
		i.n = map[string]int64{}
	}
	return err
}

func (i *installs) save(a *hub.Author) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.dirty {
		return nil
	}
	err := a.SetInstalls(maps.Clone(i.n))
	i.dirty = err != nil
	return err
}

// learn reads a document that is about to be served, once.
func (i *installs) learn(name, digest string, f io.ReadSeeker) {
	i.mu.Lock()
	known := i.seen[digest]
	i.mu.Unlock()
	if known {
		return
	}
	b, err := io.ReadAll(io.LimitReader(f, 4<<20))
	if _, again := f.Seek(0, io.SeekStart); err != nil || again != nil {
		return
	}
	d, err := hub.ParseDocument(b, name)
	if err != nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.names) > maxLearnt {
		clear(i.names)
		clear(i.seen)
	}
	i.seen[digest] = true
	for _, l := range d.Versions {
		i.names[l.Digest.Hex()] = name
	}
}

func (i *installs) count(digest string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if name := i.names[digest]; name != "" {
		i.n[name]++
		i.dirty = true
	}
}

// Bounds of a search.
const (
	maxQuery   = 200
	maxResults = 100
	onPage     = 30
)

func (s *Server) apiSearch(w http.ResponseWriter, r *http.Request) {
	got, err := s.search(r, maxResults)
	if err != nil {
		s.fail(w, err)
		return
	}
	reply(w, http.StatusOK, struct {
		Results []skillhub.Listing `json:"results"`
	}{append([]skillhub.Listing{}, got...)})
}

func (s *Server) search(r *http.Request, limit int) ([]skillhub.Listing, error) {
	q := r.URL.Query().Get("q")
	if len(q) > maxQuery {
		q = q[:maxQuery]
	}
	got, err := s.set.Search(r.Context(), q, limit)
	if err != nil {
		return nil, err
	}
	if len(got.Notes) > 0 {
		s.log("%s", strings.Join(got.Notes, "; "))
	}
	for i := range got.Listings {
		got.Listings[i].Hub = ""
	}
	return got.Listings, nil
}

func (s *Server) apiPackage(w http.ResponseWriter, r *http.Request) {
	d, err := s.document(r)
	if err != nil {
		s.fail(w, err)
		return
	}
	reply(w, http.StatusOK, d)
}

func (s *Server) document(r *http.Request) (hub.Document, error) {
	name := r.PathValue("name")
	if err := abi.CheckName(name); err != nil {
		return hub.Document{}, errors.Join(err, skillhub.ErrNotFound)
	}
	d, err := s.set.Document(r.Context(), skillhub.Ref{Kind: skillhub.Named, Name: name})
	for i := range d.Versions {
		d.Versions[i].Hub = ""
	}
	return d, err
}

// fail answers with an error of the hub. What is inside stays inside: the log
// has it.
func (s *Server) fail(w http.ResponseWriter, err error) {
	status, text := http.StatusInternalServerError, "the hub cannot answer now"
	switch {
	case errors.Is(err, skillhub.ErrNotFound):
		status, text = http.StatusNotFound, "there is no such package"
	case errors.Is(err, skillhub.ErrExpired):
		status, text = http.StatusServiceUnavailable, "the hub's metadata has expired; whoever keeps it has to sign it anew"
	}
	if status != http.StatusNotFound {
		s.log("%v", err)
	}
	reply(w, status, problem{text})
}

type problem struct {
	Error string `json:"error"`
}

func reply(w http.ResponseWriter, status int, v any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}

func date(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateOnly)
}
