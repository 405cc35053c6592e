package bench

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/store"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/hub"
	"github.com/elfhost/elfhost/skillhub/serve"
)

// The sizes of hubs that are compared.
const (
	smallHub = 1_000
	largeHub = 100_000
)

// Hub measures packages and hubs: installing, starting with many, searching,
// refreshing and serving.
func Hub(ctx context.Context, w io.Writer) error {
	dir, err := os.MkdirTemp("", "elfhost-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(hubInstall(ctx, w), hubStart(ctx, w)); err != nil {
		return err
	}
	var hubs [2]*benchHub
	for i, n := range []int{smallHub, largeHub} {
		began := time.Now()
		if hubs[i], err = newBenchHub(ctx, filepath.Join(dir, fmt.Sprint(n)), n); err != nil {
			return err
		}
		defer hubs[i].close()
		fmt.Fprintf(w, "a hub of %d packages, published in %v; its index, from nothing, in %v\n", n, hubs[i].published.Round(time.Millisecond), time.Since(began.Add(hubs[i].published)).Round(time.Millisecond))
	}
	if err := hubIndex(w, hubs[1]); err != nil {
		return err
	}
	if err := hubSearch(ctx, w, hubs[1], dir); err != nil {
		return err
	}
	if err := hubRefresh(ctx, w, hubs[0], hubs[1]); err != nil {
		return err
	}
	return hubServer(w, hubs[1])
}

// benchHub is a hub that is served, and a client that has seen it.
type benchHub struct {
	dir, index string
	published  time.Duration
	web        *httptest.Server
	server     *serve.Server
	http       *reach.HTTP
	set        *hub.Set
	rows       []skillhub.Listing
}

func (b *benchHub) close() {
	b.web.Close()
	b.http.Close()
	b.server.Close()
}

func newBenchHub(ctx context.Context, dir string, n int) (*benchHub, error) {
	b := &benchHub{dir: filepath.Join(dir, "hub"), index: filepath.Join(dir, "index.db"), http: &reach.HTTP{}}
	a := &hub.Author{Dir: b.dir, NoSync: true}
	root, err := a.Init(ctx, hub.InitOptions{})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if b.rows, err = fillHub(ctx, a, dir, n); err != nil {
		return nil, err
	}
	b.published = time.Since(began)
	if b.server, err = serve.New(ctx, serve.Options{Author: a}); err != nil {
		return nil, err
	}
	b.web = httptest.NewServer(b.server)
	o := hub.Options{
		State: filepath.Join(dir, "state"), HTTP: b.http, MaxAge: -1,
		Rights: func(g policy.Grant) (policy.Rights, error) {
			gs, err := policy.New("a hub", g)
			return policy.Rights{Grants: gs}, err
		},
		Index: func(ctx context.Context) (*store.Index, error) { return store.OpenIndex(ctx, b.index) },
	}
	offer, err := hub.Look(ctx, o, b.web.URL, root)
	if err != nil {
		return nil, err
	}
	remote, err := hub.Pin(ctx, o, "bench", b.web.URL, offer)
	if err != nil {
		return nil, err
	}
	b.set = hub.NewSet(o, []hub.Remote{remote})
	return b, b.refresh(ctx)
}

func (b *benchHub) refresh(ctx context.Context) error {
	got, err := b.set.Refresh(ctx, "")
	if err == nil {
		err = got[0].Err
	}
	return err
}

// fillHub publishes packages with texts like those of real ones. All share one
// archive: what is measured does not read it.
func fillHub(ctx context.Context, a *hub.Author, dir string, n int) ([]skillhub.Listing, error) {
	body := []byte("an archive")
	file := filepath.Join(dir, "archive")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		return nil, err
	}
	g := &texts{r: rand.New(rand.NewPCG(7, 1))}
	g.words = make([]string, 6000)
	for i := range g.words {
		g.words[i] = g.syllables(1 + g.r.IntN(4))
	}
	type publisher struct{ name, key string }
	publishers := make([]publisher, max(1, n/20))
	for i := range publishers {
		publishers[i] = publisher{g.word() + "-" + g.word(), fmt.Sprintf("%016X", g.r.Uint64())}
	}
	rs := make([]hub.Release, n)
	rows := make([]skillhub.Listing, n)
	for i := range rs {
		p := publishers[g.r.IntN(len(publishers))]
		l := skillhub.Listing{
			Name: fmt.Sprintf("%s-%s-%d", g.word(), g.word(), i), Version: fmt.Sprintf("%d.%d.%d", g.r.IntN(3), g.r.IntN(20), g.r.IntN(10)),
			Publisher: p.name, KeyID: p.key, Kind: skillhub.Tool, Digest: skillhub.DigestOf(body), Size: int64(len(body)),
			Description: g.sentence(8 + g.r.IntN(8)), Tools: []string{g.word() + "_" + g.word()},
			Needs: []abi.Need{{Cap: abi.NetHTTP, Scope: []string{"https://api." + g.word() + ".example GET,POST"}, Reason: "to ask the service"}},
		}
		if g.r.IntN(4) == 0 {
			l.Needs = append(l.Needs, abi.Need{Cap: abi.FSRead, Scope: []string{"/ws/**"}, Reason: "to read what is asked about"})
		}
		rows[i], rs[i] = l, hub.Release{Listing: l, Key: p.key, Archive: file}
	}
	_, err := a.Publish(ctx, hub.PublishOptions{}, rs...)
	return rows, err
}

// texts makes words that no dictionary of a compressor knows, in the frequencies
// of a language: the n-th most frequent one over n.
type texts struct {
	r     *rand.Rand
	words []string
}

func (g *texts) syllables(n int) string {
	var b strings.Builder
	for range n {
		b.WriteByte("bcdfghjklmnprstvwz"[g.r.IntN(18)])
		b.WriteByte("aeiou"[g.r.IntN(5)])
	}
	b.WriteByte("lmnrst"[g.r.IntN(6)])
	return b.String()
}

func (g *texts) word() string {
	for {
		if i := int(float64(len(g.words)) * g.r.Float64() * g.r.Float64() * g.r.Float64()); i < len(g.words) {
			return g.words[i]
		}
	}
}

func (g *texts) sentence(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = g.word()
	}
	return strings.Join(out, " ")
}

// hubIndex is what everybody downloads who searches.
func hubIndex(w io.Writer, b *benchHub) error {
	files, err := filepath.Glob(filepath.Join(b.dir, "index", "*.packages.index"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, errors.New("there is no index"))
	}
	var size int64
	for _, f := range files {
		st, err := os.Stat(f)
		if err != nil {
			return err
		}
		size = max(size, st.Size())
	}
	Figure(w, "hub: index of 100,000 packages, MB", float64(size)/1e6, 8)
	return nil
}

// hubSearch is one query as `hub search` makes it, opening the index included,
// to a bare FTS5 query over the same rows, its database open.
func hubSearch(ctx context.Context, w io.Writer, b *benchHub, dir string) error {
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(dir, "bare.db")))
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if err := bareIndex(db, b.rows); err != nil {
		return err
	}
	g := rand.New(rand.NewPCG(3, 9))
	var queries []string
	for range 20 { // one, two or three words of some package
		f := strings.Fields(b.rows[g.IntN(len(b.rows))].Description)
		queries = append(queries, strings.Join(f[:1+g.IntN(3)], " "))
	}
	var failed error
	took := Times(7, 1, func() {
		for _, q := range queries {
			if r, err := b.set.Search(ctx, q, 20); err != nil || len(r.Listings) == 0 {
				failed = errors.Join(failed, err, fmt.Errorf("%q: %d found, %v", q, len(r.Listings), r.Notes))
			}
		}
	}, func() {
		for _, q := range queries {
			if n, err := bareSearch(db, q); err != nil || n == 0 {
				failed = errors.Join(failed, err, fmt.Errorf("%q: bare: %d found", q, n))
			}
		}
	})
	if failed != nil {
		return failed
	}
	fmt.Fprintf(w, "a search of 100,000: %v; bare FTS5: %v\n", took[0]/20, took[1]/20)
	Figure(w, "hub: search to a bare FTS5 query", float64(took[0])/float64(took[1]), 2)
	return nil
}

func bareIndex(db *sql.DB, rows []skillhub.Listing) error {
	if _, err := db.Exec(`CREATE VIRTUAL TABLE word USING fts5(name, text, extra, prefix='2 3')`); err != nil {
		return err
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	put, err := tx.Prepare(`INSERT INTO word VALUES (?,?,?)`)
	if err != nil {
		return err
	}
	for _, l := range rows {
		if _, err := put.Exec(l.Name, l.Description, l.Publisher+" "+strings.Join(l.Tools, " ")); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func bareSearch(db *sql.DB, q string) (n int, err error) {
	words := strings.Fields(q)
	for i := range words {
		words[i] = `"` + words[i] + `"*`
	}
	rows, err := db.Query(`SELECT name, text, extra FROM word WHERE word MATCH ? ORDER BY rank LIMIT 20`, strings.Join(words, " AND "))
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var a, b, c string
		if err := rows.Scan(&a, &b, &c); err != nil {
			return 0, err
		}
		n++
	}
	return n, rows.Err()
}

// hubRefresh asks a hub that has not changed: the usual case. For people there
// is also what finding one package costs, of which the hash bin grows with the hub.
func hubRefresh(ctx context.Context, w io.Writer, small, large *benchHub) error {
	var failed error
	find := func(b *benchHub) func() {
		i := 0
		return func() {
			i = (i + 97) % len(b.rows)
			_, err := b.set.Document(ctx, skillhub.Ref{Kind: skillhub.Named, Name: b.rows[i].Name})
			failed = errors.Join(failed, err)
		}
	}
	one := Times(9, 3, find(large), find(small))
	fmt.Fprintf(w, "finding one package, metadata included: %v at 100,000; %v at 1,000\n", one[0], one[1])
	took := Times(15, 3, func() { failed = errors.Join(failed, large.refresh(ctx)) }, func() { failed = errors.Join(failed, small.refresh(ctx)) })
	if failed != nil {
		return failed
	}
	fmt.Fprintf(w, "a refresh at 100,000 packages: %v; at 1,000: %v\n", took[0], took[1])
	Figure(w, "hub: refresh at 100,000 packages to 1,000", float64(took[0])/float64(took[1]), 2)
	return nil
}

// hubServer answers requests for a document, beside net/http's file server on
// the same folder, both over loopback with as many clients as processors.
func hubServer(w io.Writer, b *benchHub) error {
	bare := httptest.NewServer(http.FileServer(http.Dir(b.dir)))
	defer bare.Close()
	files, err := filepath.Glob(filepath.Join(b.dir, "packages", b.rows[0].Name, "*.json"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, errors.New("there is no document"))
	}
	name, err := filepath.Rel(b.dir, files[0])
	if err != nil {
		return err
	}
	var failed error
	took := Times(7, 1,
		func() { failed = errors.Join(failed, hammer(b.web.URL+"/"+filepath.ToSlash(name), 2000)) },
		func() { failed = errors.Join(failed, hammer(bare.URL+"/"+filepath.ToSlash(name), 2000)) })
	if failed != nil {
		return failed
	}
	fmt.Fprintf(w, "the hub's server: %.0f requests a second; http.FileServer: %.0f\n", 2000/took[0].Seconds(), 2000/took[1].Seconds())
	Least(w, "hub: server to http.FileServer", float64(took[1])/float64(took[0]), 0.5)
	return nil
}

func hammer(url string, n int) error {
	clients := runtime.GOMAXPROCS(0)
	errs := make([]error, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for range n / clients {
				resp, err := http.Get(url)
				if err != nil {
					errs[i] = err
					return
				}
				_, err = io.Copy(io.Discard, resp.Body)
				if resp.Body.Close(); err != nil || resp.StatusCode != 200 {
					errs[i] = errors.Join(err, fmt.Errorf("%s: %d", url, resp.StatusCode))
					return
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
