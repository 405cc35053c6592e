package config

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/skillhub"
)

func TestHubs(t *testing.T) {
	p := Paths{Config: t.TempDir()}
	one := Hub{"one", "https://one.example", skillhub.DigestOf(nil)}
	two := Hub{"two", "/srv/hub", skillhub.DigestOf([]byte("two"))}
	add := func(h Hub) error {
		return p.UpdateHubs(func(hs []Hub) ([]Hub, error) { return append(hs, h), nil })
	}
	if err := errors.Join(add(one), add(two)); err != nil {
		t.Fatal(err)
	}
	got, err := p.Hubs()
	if err != nil || !slices.Equal(got, []Hub{one, two}) {
		t.Fatalf("Hubs = %+v, %v", got, err)
	}
	no := errors.New("no")
	if err := p.UpdateHubs(func([]Hub) ([]Hub, error) { return nil, no }); !errors.Is(err, no) {
		t.Errorf("UpdateHubs = %v", err)
	}
	if got, err := p.Hubs(); err != nil || len(got) != 2 {
		t.Errorf("after a failure: %+v, %v", got, err)
	}
	for text, want := range map[string]string{
		"[[hub]]\nname = 'Bad'\nlocation = 'x'\nroot = '" + string(one.Root) + "'":            "Bad",
		"[[hub]]\nname = 'a'\nlocation = 'x'\nroot = 'sha256:12'":                             "no root",
		"[[hub]]\nname = 'a'\nroot = '" + string(one.Root) + "'":                              "no location",
		"[[hub]]\nname = 'a'\nlocation = 'x'\nroot = '" + string(one.Root) + "'\ntrust = 'x'": "trust",
	} {
		if err := os.WriteFile(p.HubsFile(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Hubs(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
