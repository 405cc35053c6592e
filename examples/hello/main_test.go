package main

import (
	"testing"

	"github.com/elfhost/elfhost/pdk/pdktest"
)

func TestHello(t *testing.T) {
	r := pdktest.New(t).Call("hello", `{"name":"Ada"}`)
	if r.IsError || r.Text() != "Hello, Ada!" {
		t.Errorf("got %+v", r)
	}
}

// TestCases runs testdata/cases natively.
func TestCases(t *testing.T) { pdktest.Cases(t) }
