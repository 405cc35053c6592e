package kit_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/elfhost/elfhost/internal/kit"
)

// TestWatch: what is built of an older source is given up as soon as there is
// a newer one, and never holds the newer up.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "main.go")
	save := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save("1")
	end := errors.New("the end")
	began, gaveUp := make(chan string), make(chan error, 1)
	watched := make(chan error, 1)
	go func() {
		watched <- kit.Watch(t.Context(), dir, func(ctx context.Context) error {
			b, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			began <- string(b)
			switch string(b) {
			case "1": // a build without end
				<-ctx.Done()
				gaveUp <- context.Cause(ctx)
				return ctx.Err()
			case "1234":
				return end
			}
			return nil
		})
	}()
	next := func(want string) {
		t.Helper()
		select {
		case got := <-began:
			if got != want {
				t.Fatalf("it builds %q, want %q", got, want)
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("%q is not built", want)
		}
	}
	next("1")
	save("12")
	next("12")
	if err := <-gaveUp; !errors.Is(err, context.Canceled) {
		t.Errorf("the first build ended with %v", err)
	}
	save("1234")
	next("1234")
	if err := <-watched; !errors.Is(err, end) {
		t.Errorf("Watch ends with %v", err)
	}
}
