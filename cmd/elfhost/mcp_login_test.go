package main

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"
)

// Pages and programs that send something else to the address that waits do not
// end the log-in.
func TestCallback(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	got := make(chan url.Values, 1)
	go func() {
		q, _ := callback(ctx, l, func(q url.Values) bool { return q.Get("state") == "mine" })
		got <- q
	}()
	at := "http://" + l.Addr().String()
	for _, c := range []struct {
		path string
		want int
	}{
		{"/", 404}, {"/callback", 404}, {"/callback?code=x&state=other", 404}, {"/callback?error=access_denied", 404}, {"/other?code=x&state=mine", 404},
		{"/callback?code=right&state=mine", 200},
	} {
		resp, err := http.Get(at + c.path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s: %d", c.path, resp.StatusCode)
		}
	}
	if q := <-got; q.Get("code") != "right" {
		t.Errorf("%v", q)
	}
}
