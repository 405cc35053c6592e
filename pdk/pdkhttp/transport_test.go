package pdkhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/pdk/pdkhttp"
	"github.com/elfhost/elfhost/pdk/pdktest"
)

func TestClient(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/", http.StatusTemporaryRedirect)
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", r.Header.Get("X-Sent"))
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s", r.Method, body)
	}))
	defer srv.Close()
	ctx := pdktest.New(t).Context()
	req, err := http.NewRequestWithContext(ctx, "POST", srv.URL+"/moved", strings.NewReader("a body"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Sent", "yes")
	res, err := pdkhttp.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if string(body) != "POST a body" || err != nil || res.StatusCode != 418 || res.Header.Get("X-Seen") != "yes" || res.Request.URL.Path != "/" {
		t.Errorf("%q, %v, %+v", body, err, res)
	}
	get, err := http.NewRequestWithContext(ctx, "GET", srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = (pdkhttp.Transport{MaxBytes: 3}).RoundTrip(get); !errors.Is(err, abi.ErrTooLarge) {
		t.Errorf("a long answer: %v", err)
	}
}
