package skills

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/plain"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/skillhub"
)

// Hub is what skillhub_search and skillhub_install stand on. It must be safe
// for concurrent use.
type Hub interface {
	// Search finds packages of all configured hubs, the best match first. Hubs
	// says how many there are.
	Search(ctx context.Context, query string, limit int) (Found, error)
	// Install fetches, verifies and keeps a package. It is enabled, with the
	// rights that a person chose, only if one agreed when the gate asked about
	// the call of this ID; otherwise it stays disabled. A ref is always Named.
	Install(ctx context.Context, call string, ref skillhub.Ref) (Outcome, error)
}

// Found is what a search found.
type Found struct {
	Listings []skillhub.Listing
	Hubs     int      // that are configured
	Notes    []string // what the results may lack, and why; clauses
}

// Outcome is what became of an installation.
type Outcome struct {
	Name, Version, Publisher string
	Signed                   bool
	Digest                   skillhub.Digest
	Kind                     skillhub.Kind
	Already                  bool     // it was installed before, and nothing changed
	Disabled                 string   // why it is not used; "" is enabled
	Enable                   string   // the command with which a person enables it
	Tools                    []string // by the names under which they are registered
	Granted                  []string // what a person gave to it
	Asks                     []string // what it asks for
	Findings                 []string // what is unusual in it
}

// Limits of a search.
const (
	defaultFound = 10
	maxFound     = 50
	foundBudget  = 16 << 10 // bytes of what a model is told
)

// HubTools makes skillhub_search and skillhub_install.
func HubTools(h Hub) []host.Tool {
	search, install := tool.Spec(texts, "skillhub_search", host.KindSearch), tool.Spec(texts, "skillhub_install", host.KindOther)
	search.Parallel = true
	search.MaxOutput = -1 // it has a budget of its own
	t := hubTools{h}
	return []host.Tool{&tool.Func{S: search, Run: t.search}, &tool.Func{S: install, Run: t.install}}
}

type hubTools struct{ hub Hub }

func (t hubTools) search(ctx context.Context, c host.Call) (abi.Result, error) {
	args, err := tool.Args[struct {
		Query string `json:"query"`
		Limit int    `json:"limit"`
	}](c)
	if err != nil {
		return abi.Result{}, err
	}
	if args.Limit <= 0 {
		args.Limit = defaultFound
	}
	found, err := t.hub.Search(ctx, args.Query, min(args.Limit, maxFound))
	switch {
	case err != nil:
		return abi.Result{}, fmt.Errorf("searching the hubs: %w", err)
	case found.Hubs == 0:
		return abi.Text("No hub is configured here, so there is nothing to search. A person can add one with `elfhost hub add NAME ADDRESS`."), nil
	}
	return abi.Text(tell(args.Query, found)), nil
}

// tell writes the results, within foundBudget.
func tell(query string, found Found) string {
	var b strings.Builder
	n := len(found.Listings)
	switch n {
	case 0:
		fmt.Fprintf(&b, "Nothing in the %s matches %q. Try fewer or other words.\n", count(found.Hubs, "hub"), plain.Line(query, 100))
	case 1:
		b.WriteString("One package matches. Install it with skillhub_install and its id; a person decides what it may do.\n")
	default:
		fmt.Fprintf(&b, "%d packages match, the best first. Install one with skillhub_install and its id; a person decides what it may do.\n", n)
	}
	for i, l := range found.Listings {
		entry := listing(l)
		if b.Len()+len(entry) > foundBudget && i > 0 {
			fmt.Fprintf(&b, "- and %d more, which are too many to show; use a smaller limit or other words\n", n-i)
			break
		}
		b.WriteString(entry)
	}
	for _, note := range found.Notes {
		fmt.Fprintf(&b, "Note: %s.\n", strings.TrimSuffix(plain.Line(note, 300), "."))
	}
	return b.String()
}

func listing(l skillhub.Listing) string {
	kind := map[skillhub.Kind]string{skillhub.Text: "skill", skillhub.Tool: "tool", skillhub.Both: "skill with tools"}[l.Kind]
	if kind == "" {
		kind = "package"
	}
	by := "by nobody known, unsigned"
	switch {
	case l.Publisher != "" && l.KeyID != "":
		by = "signed by " + plain.Line(l.Publisher, 64)
	case l.Publisher != "":
		by = "unsigned, says it is by " + plain.Line(l.Publisher, 64)
	case l.KeyID != "":
		by = "signed by the key " + plain.Line(l.KeyID, 16)
	}
	facts := []string{kind + " " + plain.Line(l.Version, 64), by, "asks for " + asks(l.Needs)}
	if l.Installs > 0 {
		facts = append(facts, count(int(l.Installs), "install"))
	}
	if l.Yanked != "" {
		facts = append(facts, "withdrawn by its publisher: "+plain.Line(l.Yanked, 100))
	}
	out := fmt.Sprintf("- %s: %s\n  %s\n", plain.Line(idOf(l), 140), plain.Line(l.Description, 300), strings.Join(facts, "; "))
	if len(l.Tools) > 0 {
		out += "  tools: " + plain.Line(strings.Join(l.Tools, ", "), 300) + "\n"
	}
	return out
}

// idOf is what skillhub_install takes for a listing.
func idOf(l skillhub.Listing) string {
	return skillhub.Ref{Kind: skillhub.Named, Hub: l.Hub, Name: l.Name}.String()
}

func asks(needs []abi.Need) string {
	if len(needs) == 0 {
		return "nothing"
	}
	var all []string
	for _, n := range needs {
		all = append(all, strings.TrimSpace(string(n.Cap)+" "+strings.Join(n.Scope, ", ")))
	}
	return plain.Line(strings.Join(all, "; "), 300)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (t hubTools) install(ctx context.Context, c host.Call) (abi.Result, error) {
	args, err := tool.Args[struct {
		ID      string `json:"skillId"`
		Version string `json:"version"`
	}](c)
	if err != nil {
		return abi.Result{}, err
	}
	ref, err := HubRef(args.ID, args.Version)
	if err != nil {
		return abi.Errorf("Nothing was installed: %v.", err), nil
	}
	got, err := t.hub.Install(ctx, c.ID, ref)
	switch {
	case errors.Is(err, abi.ErrDenied):
		return abi.Errorf("Nothing was installed: %v. No answer can allow it here.", err), nil
	case errors.Is(err, skillhub.ErrNotFound):
		return abi.Errorf("Nothing was installed: %v. skillhub_search shows what there is.", err), nil
	case err != nil:
		return abi.Errorf("Nothing was installed: %v.", err), nil
	}
	return abi.Text(got.tell()), nil
}

// HubRef reads the id that skillhub_search printed, and a version. Anything
// else that names a package, an address or a path, is an error: what a model
// installs comes from the hubs that a person chose.
func HubRef(id, version string) (skillhub.Ref, error) {
	ref, err := skillhub.ParseRef(id)
	if err != nil || ref.Kind != skillhub.Named {
		return skillhub.Ref{}, fmt.Errorf("%q is not an id that skillhub_search prints, such as hub/name", plain.Line(id, 100))
	}
	switch {
	case version == "":
	case ref.Version != "" && ref.Version != version:
		return skillhub.Ref{}, fmt.Errorf("the id names version %s and the call version %s", ref.Version, plain.Line(version, 64))
	default:
		if err := skillhub.CheckVersion(version); err != nil {
			return skillhub.Ref{}, err
		}
		ref.Version = version
	}
	return ref, nil
}

// tell says what happened, for the model.
func (o Outcome) tell() string {
	var b strings.Builder
	by := "which nobody signed"
	if o.Signed {
		by = "signed by " + plain.Line(o.Publisher, 64)
	}
	did := "was installed"
	switch {
	case o.Already && o.Disabled == "":
		did = "was installed already, and nothing changed"
	case o.Disabled != "":
		did = "was fetched and verified, and is not used yet"
	}
	fmt.Fprintf(&b, "%s %s, %s, %s (%s).\n", plain.Line(o.Name, 64), plain.Line(o.Version, 64), by, did, o.Digest.Short())
	if o.Disabled != "" {
		fmt.Fprintf(&b, "It is disabled: %s. A person can look at it and enable it with `%s`; you cannot. Go on without it, or tell the person.\n", plain.Line(o.Disabled, 300), plain.Line(o.Enable, 300))
	}
	if len(o.Tools) > 0 && o.Disabled == "" {
		fmt.Fprintf(&b, "You can call these tools now: %s.\n", plain.Line(strings.Join(o.Tools, ", "), 500))
	}
	if o.Kind != skillhub.Tool && o.Disabled == "" {
		fmt.Fprintf(&b, "Read the skill with read_skill and the name %s.\n", plain.Line(o.Name, 64))
	}
	switch {
	case len(o.Asks) == 0:
		b.WriteString("It asks for no rights.\n")
	case len(o.Granted) > 0:
		fmt.Fprintf(&b, "A person gave it: %s. Anything else it asks for is asked about or denied when it uses it.\n", plain.Line(strings.Join(o.Granted, "; "), 500))
	default:
		fmt.Fprintf(&b, "It asks for %s, and has none of it.\n", plain.Line(strings.Join(o.Asks, "; "), 500))
	}
	for _, f := range o.Findings {
		fmt.Fprintf(&b, "Unusual: %s.\n", strings.TrimSuffix(plain.Line(f, 300), "."))
	}
	return b.String()
}
