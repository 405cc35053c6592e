package store_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/elfhost/elfhost/host/store"
)

func openIndex(t *testing.T, file string) *store.Index {
	t.Helper()
	x, err := store.OpenIndex(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

func entries(es ...store.Entry) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for _, e := range es {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func keys(t *testing.T, x *store.Index, text string) []string {
	t.Helper()
	found, err := x.Search(t.Context(), text, 10)
	if err != nil {
		t.Fatalf("Search(%q): %v", text, err)
	}
	var out []string
	for _, f := range found {
		out = append(out, f.Set+"/"+f.Key)
	}
	return out
}

func TestIndexSearch(t *testing.T) {
	x := openIndex(t, filepath.Join(t.TempDir(), "sub", "x.db"))
	err := x.Replace(t.Context(), "a", "one", entries(
		store.Entry{Key: "read-pdf", Name: "read-pdf", Text: "Extract the text of PDF files", Extra: "pdf_text acme", Count: 10},
		store.Entry{Key: "pdf-forms", Name: "pdf-forms", Text: "Fill in PDF forms", Extra: "acme", Preferred: true, Count: 1},
		store.Entry{Key: "pdf", Name: "pdf", Text: "Something else altogether, at some length, to be a poor match of any other word"},
		store.Entry{Key: "weather", Name: "weather", Text: "Wetter in Zürich", Extra: "meteo", Body: []byte("body")},
	))
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Replace(t.Context(), "b", "two", entries(store.Entry{Key: "weather", Name: "weather", Text: "Another one", Count: 3})); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		"zurich":          {"a/weather"}, // without its diaeresis
		"extr pd":         {"a/read-pdf"},
		"weather":         {"b/weather", "a/weather"}, // both are the key; the count decides
		"nothing such":    nil,
		"forms zanzibar":  {"a/pdf-forms"}, // any of the words, where none has all
		`"*) OR name:pdf`: {"a/pdf", "a/pdf-forms", "a/read-pdf"},
		"meteo":           {"a/weather"},
		"":                {"a/pdf-forms", "a/read-pdf", "b/weather", "a/pdf", "a/weather"},
		"\x00\xff":        {"a/pdf-forms", "a/read-pdf", "b/weather", "a/pdf", "a/weather"},
	} {
		got := keys(t, x, text)
		if text == `"*) OR name:pdf` { // only that it is no syntax of the engine
			slices.Sort(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("Search(%q) = %q, want %q", text, got, want)
		}
	}
	if got := keys(t, x, "pdf"); got[0] != "a/pdf" || len(got) != 3 {
		t.Errorf(`Search("pdf") = %q: the package of that name is not the first`, got)
	}
}

func TestIndexReplace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.db")
	x := openIndex(t, file)
	one := store.Entry{Key: "one", Name: "one", Text: "first"}
	if err := x.Replace(t.Context(), "s", "1", entries(one, store.Entry{Key: "two", Name: "two", Text: "second"})); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := x.Replace(t.Context(), "s", "2", func(yield func(store.Entry, error) bool) {
		_ = yield(store.Entry{Key: "three", Name: "three", Text: "third"}, nil) && yield(store.Entry{}, broken)
	})
	if !errors.Is(err, broken) {
		t.Fatalf("Replace = %v", err)
	}
	if s, err := x.State(t.Context(), "s"); err != nil || s.Tag != "1" || s.Rows != 2 {
		t.Errorf("State after a failure = %+v, %v", s, err)
	}
	if got := keys(t, x, "third"); got != nil {
		t.Errorf("a failed Replace left %q", got)
	}
	if err := x.Replace(t.Context(), "s", "3", entries(one, store.Entry{Key: "two", Name: "two", Text: "changed"})); err != nil {
		t.Fatal(err)
	}
	if keys(t, x, "second") != nil || len(keys(t, x, "changed")) != 1 || len(keys(t, x, "first")) != 1 {
		t.Error("words of the old text are found, or those of the new are not")
	}
	if err := x.Replace(t.Context(), "s", "4", entries(one)); err != nil {
		t.Fatal(err)
	}
	if keys(t, x, "changed") != nil || len(keys(t, x, "first")) != 1 {
		t.Error("what is gone is found")
	}
	if err := x.Drop(t.Context(), "s"); err != nil || keys(t, x, "first") != nil {
		t.Errorf("Drop: %v", err)
	}
	if s, err := x.State(t.Context(), "s"); err != nil || s != (store.SetState{}) {
		t.Errorf("State of nothing = %+v, %v", s, err)
	}
}

// TestIndexTogether: several processes fill it at once, each its own sets.
func TestIndexTogether(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.db")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			x, err := store.OpenIndex(context.Background(), file)
			if err != nil {
				t.Error(err)
				return
			}
			defer x.Close()
			for j := range 10 {
				set := fmt.Sprint(i)
				if err := x.Replace(context.Background(), set, fmt.Sprint(j), entries(store.Entry{Key: "k", Name: fmt.Sprintf("n%d", j)}, store.Entry{Key: fmt.Sprint(j)})); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := keys(t, openIndex(t, file), "n9"); len(got) != 4 {
		t.Errorf("found %q", got)
	}
}

// TestIndexDamaged: the index is a cache.
func TestIndexDamaged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.db")
	if err := os.WriteFile(file, []byte("this is no database at all, however one looks at it"), 0o600); err != nil {
		t.Fatal(err)
	}
	x := openIndex(t, file)
	if err := x.Replace(t.Context(), "s", "1", entries(store.Entry{Key: "one", Name: "one"})); err != nil {
		t.Fatal(err)
	}
}

func FuzzIndexSearch(f *testing.F) {
	for _, s := range []string{"pdf", `"`, "a AND", "name:x", "\x00", "ß é 中文", "*", "^a", "NEAR(a b)"} {
		f.Add(s)
	}
	x, err := store.OpenIndex(context.Background(), filepath.Join(f.TempDir(), "x.db"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { x.Close() })
	for i := range 20 {
		if err := x.Replace(context.Background(), fmt.Sprint(i), "", entries(store.Entry{Key: "pdf", Name: "pdf", Text: "中文 text"})); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := x.Search(t.Context(), text, 5); err != nil {
			t.Errorf("Search(%q): %v", text, err)
		}
	})
}
