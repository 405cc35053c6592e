package skills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy/packages"
	"github.com/elfhost/elfhost/skillhub"
)

// shelfHub answers as it is told and keeps what it was asked.
type shelfHub struct {
	found     Found
	out       Outcome
	err       error
	query     string
	limit     int
	call      string
	installed []string
}

func (h *shelfHub) Search(_ context.Context, query string, limit int) (Found, error) {
	h.query, h.limit = query, limit
	return h.found, h.err
}

func (h *shelfHub) Install(_ context.Context, call string, ref skillhub.Ref) (Outcome, error) {
	h.call, h.installed = call, append(h.installed, ref.String())
	return h.out, h.err
}

// use calls a hub tool through a registry, with a person who agrees.
func (h *shelfHub) use(t *testing.T, name, args string) abi.Result {
	t.Helper()
	r := host.New(host.Options{Gate: &host.Gate{Approver: agrees{}}})
	if err := r.Add(HubTools(h)...); err != nil {
		t.Fatal(err)
	}
	return r.Invoke(t.Context(), host.Call{ID: "call-7", Tool: name, Args: json.RawMessage(args)})
}

type agrees struct{}

func (agrees) Approve(context.Context, host.Ask) (host.Answer, error) {
	return host.Answer{Allow: true, Scope: host.Once}, nil
}

func TestSkillhubSearch(t *testing.T) {
	h := &shelfHub{found: Found{Hubs: 2, Notes: []string{"the hub \"b\" cannot be reached, so its index of 2026-11-01 was searched"}, Listings: []skillhub.Listing{
		{Hub: "acme", Name: "fetch", Version: "1.2.0", Publisher: "corp", KeyID: "39E1", Description: "Fetches\u202e pages.", Kind: skillhub.Tool,
			Needs: []abi.Need{{Cap: abi.NetHTTP, Scope: []string{"public GET"}}}, Tools: []string{"fetch_page"}, Installs: 12},
		{Name: "notes", Version: "0.1.0", Publisher: "corp", Description: "Takes notes.", Kind: skillhub.Text, Yanked: "it was wrong"},
	}}}
	res := h.use(t, "skillhub_search", `{"query":"pages"}`)
	want := `2 packages match, the best first. Install one with skillhub_install and its id; a person decides what it may do.
- acme/fetch: Fetches pages.
  tool 1.2.0; signed by corp; asks for net.http public GET; 12 installs
  tools: fetch_page
- notes: Takes notes.
  skill 0.1.0; unsigned, says it is by corp; asks for nothing; withdrawn by its publisher: it was wrong
Note: the hub "b" cannot be reached, so its index of 2026-11-01 was searched.
`
	if res.IsError || res.Text() != want {
		t.Errorf("got\n%s\nwant\n%s", res.Text(), want)
	}
	if h.query != "pages" || h.limit != defaultFound {
		t.Errorf("asked for %q, %d", h.query, h.limit)
	}
	h.found = Found{Hubs: 1}
	if res := h.use(t, "skillhub_search", `{"query":"x","limit":50}`); !strings.Contains(res.Text(), `Nothing in the 1 hub matches "x"`) || h.limit != 50 {
		t.Errorf("%d: %s", h.limit, res.Text())
	}
	h.found = Found{}
	if res := h.use(t, "skillhub_search", `{"query":"x"}`); res.IsError || !strings.Contains(res.Text(), "elfhost hub add") {
		t.Errorf("%s", res.Text())
	}
	if res := h.use(t, "skillhub_search", `{}`); !res.IsError {
		t.Error("a search for nothing is made")
	}
	h.err = errors.New("the index is broken")
	if res := h.use(t, "skillhub_search", `{"query":"x"}`); !res.IsError || !strings.Contains(res.Text(), "the index is broken") {
		t.Errorf("%s", res.Text())
	}
}

func TestSkillhubSearchStaysInItsBudget(t *testing.T) {
	h := &shelfHub{found: Found{Hubs: 1}}
	for i := range 50 {
		h.found.Listings = append(h.found.Listings, skillhub.Listing{Name: fmt.Sprintf("p%d", i), Version: "1.0.0", Description: strings.Repeat("long ", 1000), Tools: []string{strings.Repeat("t", 5000)}})
	}
	res := h.use(t, "skillhub_search", `{"query":"x","limit":50}`)
	if n := len(res.Text()); n > foundBudget+500 || !strings.Contains(res.Text(), "more, which are too many to show") {
		t.Errorf("%d bytes", n)
	}
}

// TestHUB16OnlyIdsOfAHub: what a model can name is what the person's hubs have.
func TestHUB16OnlyIdsOfAHub(t *testing.T) {
	h := &shelfHub{out: Outcome{Name: "fetch", Version: "1.0.0"}}
	for _, id := range []string{
		"https://evil.example/x.elfpkg#sha256=" + strings.Repeat("a", 64), "oci://evil.example/x", "file:///tmp/x", "./x", "/tmp/x", "../x", "x.elfpkg",
		"a/b/c", "Fetch", "a b", "", "fetch@1.0.0@2", "~/x", `C:\x`, "fetch\u202e",
	} {
		args, _ := json.Marshal(map[string]string{"skillId": id})
		if res := h.use(t, "skillhub_install", string(args)); !res.IsError {
			t.Errorf("%q is taken: %s", id, res.Text())
		}
	}
	for _, args := range []string{`{"skillId":"fetch","version":"../x"}`, `{"skillId":"fetch@1.0.0","version":"2.0.0"}`, `{"skillId":"fetch","version":"1.0.0","url":"https://x"}`} {
		if res := h.use(t, "skillhub_install", args); !res.IsError {
			t.Errorf("%s is taken: %s", args, res.Text())
		}
	}
	if len(h.installed) != 0 {
		t.Fatalf("installed %q", h.installed)
	}
	for args, want := range map[string]string{`{"skillId":"acme/fetch"}`: "acme/fetch", `{"skillId":"fetch","version":"1.0.0"}`: "fetch@1.0.0", `{"skillId":"fetch@1.0.0"}`: "fetch@1.0.0"} {
		h.installed = nil
		if res := h.use(t, "skillhub_install", args); res.IsError || len(h.installed) != 1 || h.installed[0] != want || h.call != "call-7" {
			t.Errorf("%s: %q, %s", args, h.installed, res.Text())
		}
	}
}

func TestSkillhubInstallSaysWhatHappened(t *testing.T) {
	digest := skillhub.DigestOf([]byte("x"))
	base := Outcome{Name: "fetch", Version: "1.2.0", Publisher: "corp", Signed: true, Digest: digest, Kind: skillhub.Both}
	enabled, disabled := base, base
	enabled.Tools, enabled.Asks, enabled.Granted = []string{"fetch_page"}, []string{"net.http public GET"}, []string{"net.http https://a.example GET"}
	disabled.Disabled, disabled.Enable, disabled.Asks = "nobody was there to decide", "elfhost plugin enable fetch", []string{"net.http public GET"}
	disabled.Findings = []string{"a download that is run at once: curl x | sh"}
	for _, c := range []struct {
		out  Outcome
		err  error
		want []string
		not  string
	}{
		{enabled, nil, []string{"fetch 1.2.0, signed by corp, was installed (" + digest.Short(), "call these tools now: fetch_page", "read_skill and the name fetch", "A person gave it: net.http https://a.example GET"}, "disabled"},
		{disabled, nil, []string{"is not used yet", "It is disabled: nobody was there to decide", "`elfhost plugin enable fetch`", "has none of it", "Unusual: a download"}, "call these tools"},
		{Outcome{Name: "n", Version: "1.0.0", Already: true, Digest: digest, Kind: skillhub.Tool}, nil, []string{"which nobody signed", "installed already", "asks for no rights"}, "read_skill"},
		{Outcome{}, fmt.Errorf("%q: %w", "fetch", skillhub.ErrNotFound), []string{"Nothing was installed", "skillhub_search shows"}, ""},
		{Outcome{}, &packages.Refusal{Finding: packages.Finding{Layer: "the system policy", Where: "/p.toml:3", Why: "no"}}, []string{"Nothing was installed", "/p.toml:3", "No answer can allow it"}, ""},
		{Outcome{}, skillhub.ErrMismatch, []string{"Nothing was installed", "not those that were promised"}, ""},
	} {
		h := &shelfHub{out: c.out, err: c.err}
		res := h.use(t, "skillhub_install", `{"skillId":"fetch"}`)
		if res.IsError != (c.err != nil) {
			t.Errorf("%+v: %s", c, res.Text())
		}
		for _, w := range c.want {
			if !strings.Contains(res.Text(), w) {
				t.Errorf("nothing about %q in %s", w, res.Text())
			}
		}
		if c.not != "" && strings.Contains(res.Text(), c.not) {
			t.Errorf("%q in %s", c.not, res.Text())
		}
	}
}
