package store

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Index finds texts by their words. It is a cache: what is in it can be had
// again elsewhere, so a file that cannot be read is replaced by an empty one.
// It is safe for concurrent use, also by several processes.
type Index struct {
	db *sql.DB
}

// Entry is one text of a set.
type Entry struct {
	Key         string // names it within its set
	Name        string // what a word counts most in
	Text, Extra string // where it counts less
	Preferred   bool   // stands before what matches as well
	Count       int64  // and then the larger one
	Body        []byte // what Search returns; the index never looks into it
}

// Found is an Entry that a search met.
type Found struct {
	Set string
	Entry
}

// SetState says what a set is made from.
type SetState struct {
	Tag  string // the caller's: as given to Replace
	Time time.Time
	Rows int64
}

const indexSchema = `
CREATE TABLE IF NOT EXISTS source (name TEXT PRIMARY KEY, tag TEXT NOT NULL, time INTEGER NOT NULL, size INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS entry (
  n INTEGER PRIMARY KEY, source TEXT NOT NULL, key TEXT NOT NULL, name TEXT NOT NULL, text TEXT NOT NULL, extra TEXT NOT NULL,
  preferred INTEGER NOT NULL, count INTEGER NOT NULL, body BLOB NOT NULL, UNIQUE (source, key)
) STRICT;
CREATE INDEX IF NOT EXISTS entry_count ON entry(preferred DESC, count DESC);
CREATE VIRTUAL TABLE IF NOT EXISTS word USING fts5(name, text, extra, content='entry', content_rowid='n', prefix='2 3', tokenize="unicode61 remove_diacritics 2");
INSERT INTO word(word, rank) VALUES ('rank', 'bm25(8.0, 2.0, 1.0)');
PRAGMA user_version = 1;
`

// OpenIndex opens the index in a file, and makes it, and its folder, if need be.
func OpenIndex(ctx context.Context, path string) (*Index, error) {
	x, err := openIndex(ctx, path)
	for until := time.Now().Add(patience); busy(err) && time.Now().Before(until) && ctx.Err() == nil; { // the change to write-ahead logging does not wait
		time.Sleep(5 * time.Millisecond)
		x, err = openIndex(ctx, path)
	}
	if err != nil && !busy(err) && ctx.Err() == nil {
		for _, ext := range []string{"", "-wal", "-shm"} {
			if gone := os.Remove(path + ext); gone != nil && !errors.Is(gone, os.ErrNotExist) {
				return nil, fmt.Errorf("opening the index %q: %w", path, err)
			}
		}
		x, err = openIndex(ctx, path)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the index %q: %w", path, err)
	}
	return x, nil
}

func openIndex(ctx context.Context, path string) (*Index, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", source(path, "_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)"))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(2)
	x := &Index{db}
	var version int
	if err = db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err == nil && version != 1 {
		if version > 1 {
			err = ErrNewer // of a newer program: that one builds it again as well
		} else {
			err = x.inTx(ctx, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, indexSchema)
				return err
			})
		}
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return x, nil
}

// Close closes the index.
func (x *Index) Close() error { return x.db.Close() }

// inTx runs one transaction, which takes the write lock when it begins.
func (x *Index) inTx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := x.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// State says what a set was made from; the zero value where there is none.
func (x *Index) State(ctx context.Context, set string) (SetState, error) {
	var s SetState
	var when int64
	err := x.db.QueryRowContext(ctx, `SELECT tag, time, size FROM source WHERE name = ?`, set).Scan(&s.Tag, &when, &s.Rows)
	if errors.Is(err, sql.ErrNoRows) {
		return SetState{}, nil
	}
	s.Time = fromMicros(when)
	return s, err
}

// Replace makes a set consist of these entries, and remembers the tag. Entries
// that stay as they are cost little. Where the entries end with an error, the
// set is as before.
func (x *Index) Replace(ctx context.Context, set, tag string, entries iter.Seq2[Entry, error]) error {
	err := x.inTx(ctx, func(tx *sql.Tx) error {
		r, err := newReplacer(ctx, tx, set)
		if err != nil {
			return err
		}
		for e, err := range entries {
			if err != nil {
				return err
			}
			if err := r.put(ctx, e); err != nil {
				return err
			}
		}
		if err := r.dropRest(ctx); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO source VALUES (?,?,?,?) ON CONFLICT(name) DO UPDATE SET tag=excluded.tag, time=excluded.time, size=excluded.size`,
			set, tag, micros(time.Now()), r.rows)
		return err
	})
	if err != nil {
		return fmt.Errorf("indexing %q: %w", set, err)
	}
	return nil
}

// Drop removes a set.
func (x *Index) Drop(ctx context.Context, set string) error {
	return x.inTx(ctx, func(tx *sql.Tx) error {
		r, err := newReplacer(ctx, tx, set)
		if err != nil {
			return err
		}
		if err := r.dropRest(ctx); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `DELETE FROM source WHERE name = ?`, set)
		return err
	})
}

// replacer writes what is new or different, and remembers what it met.
type replacer struct {
	tx   *sql.Tx
	set  string
	rows int64
	met  map[int64]bool

	old, drop, word, unword, add *sql.Stmt
}

func newReplacer(ctx context.Context, tx *sql.Tx, set string) (*replacer, error) {
	r := &replacer{tx: tx, set: set, met: map[int64]bool{}}
	for _, p := range []struct {
		to   **sql.Stmt
		text string
	}{
		{&r.old, `SELECT n, name, text, extra, preferred, count, body FROM entry WHERE source = ? AND key = ?`},
		{&r.drop, `DELETE FROM entry WHERE n = ?`},
		{&r.add, `INSERT INTO entry(source, key, name, text, extra, preferred, count, body) VALUES (?,?,?,?,?,?,?,?)`},
		{&r.word, `INSERT INTO word(rowid, name, text, extra) VALUES (?,?,?,?)`},
		{&r.unword, `INSERT INTO word(word, rowid, name, text, extra) SELECT 'delete', n, name, text, extra FROM entry WHERE n = ?`},
	} {
		var err error
		if *p.to, err = tx.PrepareContext(ctx, p.text); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *replacer) put(ctx context.Context, e Entry) error {
	r.rows++
	var n int64
	old := Entry{Key: e.Key}
	err := r.old.QueryRowContext(ctx, r.set, e.Key).Scan(&n, &old.Name, &old.Text, &old.Extra, &old.Preferred, &old.Count, &old.Body)
	switch {
	case err == nil && same(old, e):
		r.met[n] = true
		return nil
	case err == nil:
		if err := r.remove(ctx, n); err != nil {
			return err
		}
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	if e.Body == nil {
		e.Body = []byte{}
	}
	res, err := r.add.ExecContext(ctx, r.set, e.Key, e.Name, e.Text, e.Extra, e.Preferred, e.Count, e.Body)
	if err != nil {
		return err
	}
	if n, err = res.LastInsertId(); err != nil {
		return err
	}
	r.met[n] = true
	_, err = r.word.ExecContext(ctx, n, e.Name, e.Text, e.Extra)
	return err
}

func same(a, b Entry) bool {
	return a.Name == b.Name && a.Text == b.Text && a.Extra == b.Extra && a.Preferred == b.Preferred && a.Count == b.Count && bytes.Equal(a.Body, b.Body)
}

func (r *replacer) remove(ctx context.Context, n int64) error {
	if _, err := r.unword.ExecContext(ctx, n); err != nil {
		return err
	}
	_, err := r.drop.ExecContext(ctx, n)
	return err
}

// dropRest removes what was not met.
func (r *replacer) dropRest(ctx context.Context) error {
	var rest []int64
	rows, err := r.tx.QueryContext(ctx, `SELECT n FROM entry WHERE source = ?`, r.set)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return err
		}
		if !r.met[n] {
			rest = append(rest, n)
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, n := range rest {
		if err := r.remove(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// candidates are how many of the best matches are put in order. Where more
// match, those behind differ from them by their match alone.
const candidates = 100

// Search finds the entries that hold all words of a text, as words or as
// beginnings of words; where none does, those that hold any. The one whose key
// is the text comes first, then the best match; of those that match about as
// well the preferred, and then those with the larger count. A text without
// words finds what is preferred and has the largest counts. It takes any text.
func (x *Index) Search(ctx context.Context, text string, limit int) ([]Found, error) {
	words := Words(text)
	if len(words) == 0 {
		hits, err := x.hits(ctx, `SELECT n, source, key, preferred, count, 0 FROM entry ORDER BY preferred DESC, count DESC, n LIMIT ?`, limit)
		if err != nil {
			return nil, err
		}
		return x.bodies(ctx, order(hits, ""), limit)
	}
	const ranked = `SELECT e.n, e.source, e.key, e.preferred, e.count, w.rank
		FROM (SELECT rowid, rank FROM word WHERE word MATCH ?1 ORDER BY rank LIMIT ?2) w JOIN entry e ON e.n = w.rowid
		UNION ALL SELECT n, source, key, preferred, count, 0 FROM entry WHERE key = ?3 AND source IN (SELECT name FROM source)`
	text = strings.ToLower(strings.TrimSpace(text))
	for i := range words {
		words[i] = `"` + words[i] + `"*`
	}
	most := max(candidates, 2*limit)
	hits, err := x.hits(ctx, ranked, strings.Join(words, " AND "), most, text)
	if err == nil && len(hits) == 0 && len(words) > 1 {
		hits, err = x.hits(ctx, ranked, strings.Join(words, " OR "), most, text)
	}
	if err != nil {
		return nil, err
	}
	return x.bodies(ctx, order(hits, text), limit)
}

// Words are what Search looks for: runs of letters and digits, 16 at the most.
func Words(text string) []string {
	var out []string
	for _, w := range strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) || r == utf8.RuneError
	}) {
		if len(out) < 16 && len(w) <= 128 {
			out = append(out, w)
		}
	}
	return out
}

// hit is an entry while it is put in order. Of one entry there may be two, its
// match and its key.
type hit struct {
	n           int64
	source, key string
	preferred   bool
	count       int64
	rank        float64 // bm25: negative, and the better the lower
	class       int
}

func (x *Index) hits(ctx context.Context, q string, args ...any) ([]hit, error) {
	rows, err := x.db.QueryContext(ctx, q, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var hits []hit
	for rows.Next() {
		var h hit
		if err := rows.Scan(&h.n, &h.source, &h.key, &h.preferred, &h.count, &h.rank); err != nil {
			return nil, err
		}
		hits = append(hits, h)
	}
	return hits, rows.Err()
}

// order sorts by classes of matches: those within an eighth of the best are as good.
func order(hits []hit, key string) []hit {
	best := 0.0
	for _, h := range hits {
		best = min(best, h.rank)
	}
	for i := range hits {
		h := &hits[i]
		switch {
		case h.key == key:
			h.class = -1
		case best < 0:
			h.class = int(8 * (1 - h.rank/best))
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int {
		if a.preferred != b.preferred && a.class == b.class {
			if a.preferred {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(b.count, a.count), cmp.Compare(a.rank, b.rank),
			strings.Compare(a.key, b.key), strings.Compare(a.source, b.source))
	})
	seen := map[int64]bool{}
	return slices.DeleteFunc(hits, func(h hit) bool {
		was := seen[h.n]
		seen[h.n] = true
		return was
	})
}

// bodies reads the entries of the first hits.
func (x *Index) bodies(ctx context.Context, hits []hit, limit int) ([]Found, error) {
	hits = hits[:min(len(hits), max(limit, 0), 1000)]
	if len(hits) == 0 {
		return nil, nil
	}
	at := make(map[int64]int, len(hits))
	out := make([]Found, len(hits))
	args := make([]any, len(hits))
	for i, h := range hits {
		at[h.n], args[i] = i, h.n
		out[i] = Found{h.source, Entry{Key: h.key, Preferred: h.preferred, Count: h.count}}
	}
	rows, err := x.db.QueryContext(ctx, `SELECT n, name, text, extra, body FROM entry WHERE n IN (?`+strings.Repeat(",?", len(hits)-1)+`)`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		var e Entry
		if err := rows.Scan(&n, &e.Name, &e.Text, &e.Extra, &e.Body); err != nil {
			return nil, err
		}
		f := &out[at[n]]
		delete(at, n)
		f.Name, f.Text, f.Extra, f.Body = e.Name, e.Text, e.Extra, e.Body
	}
	for _, i := range slices.Backward(slices.Sorted(maps.Values(at))) { // another process has just replaced them
		out = slices.Delete(out, i, i+1)
	}
	return out, rows.Err()
}
