package schema

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// resolve follows a local reference.
func (d *document) resolve(ref string, based bool) (*node, error) {
	frag, local := strings.CutPrefix(ref, "#")
	switch {
	case !local:
		return nil, fmt.Errorf("the reference %q is not local: only '#…' is followed, nothing is loaded", ref)
	case based:
		return nil, fmt.Errorf("the reference %q lies below a nested $id, which is not supported", ref)
	}
	at := ""
	switch {
	case frag == "" || frag == "/":
	case strings.HasPrefix(frag, "/"):
		at = frag
	default:
		ptr, ok := d.anchors[frag]
		if !ok {
			return nil, fmt.Errorf("the reference %q leads nowhere", ref)
		}
		at = ptr
	}
	v, at, ok := lookup(d.root, at)
	if !ok {
		return nil, fmt.Errorf("the reference %q leads nowhere", ref)
	}
	return d.build(v, at, false)
}

// lookup finds a JSON pointer and returns it in canonical form.
func lookup(v any, ptr string) (any, string, bool) {
	at := ""
	for step := range strings.SplitSeq(strings.TrimPrefix(ptr, "/"), "/") {
		if ptr == "" {
			break
		}
		step = unescape(step)
		switch c := v.(type) {
		case map[string]any:
			next, ok := c[step]
			if !ok {
				return nil, "", false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(c) {
				return nil, "", false
			}
			v = c[i]
		default:
			return nil, "", false
		}
		at += "/" + escape(step)
	}
	return v, at, true
}

// unescape reads one step of a pointer in a URI fragment (RFC 6901, section 6).
func unescape(step string) string {
	if plain, err := url.PathUnescape(step); err == nil {
		step = plain
	}
	return strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
}

func escape(step string) string {
	return strings.ReplaceAll(strings.ReplaceAll(step, "~", "~0"), "/", "~1")
}

func (d *document) findAnchors(v any, at string) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range [...]string{"$anchor", "$dynamicAnchor"} {
			if name, ok := v[k].(string); ok {
				d.anchors[name] = at
			}
		}
		for k, c := range v {
			d.findAnchors(c, at+"/"+escape(k))
		}
	case []any:
		for i, c := range v {
			d.findAnchors(c, at+"/"+strconv.Itoa(i))
		}
	}
}
