package config

import (
	"fmt"
	"github.com/elfhost/elfhost/internal/config/strict"
	"net/url"
	"reflect"
	"strings"
)

// PolicyKeys lists every key of policy.toml, in the order of the documentation.
func PolicyKeys() []Key { return keysOf(reflect.TypeFor[policyFile](), "", Key{}) }

// ExplainPolicy says what each policy file here sets of a key, or of every key
// below it: layers do not replace each other, each narrows. Keys of no policy,
// and keys that no file sets, give nothing.
func ExplainPolicy(p Paths, project, key string) ([]Explanation, error) {
	key = strings.TrimSuffix(key, ".")
	var out []Explanation
	for _, f := range PolicyFiles(p, project) {
		b, present, err := strict.ReadIfPresent(f.Path)
		if err != nil {
			return nil, fmt.Errorf("reading the %s: %w", f.Kind, err)
		}
		if !present {
			continue
		}
		var file policyFile
		ls, err := strict.Decode(b, f.Path, &file)
		if err != nil {
			return nil, err
		}
		w := &policyExplainer{file: f.Path, layer: f.Kind.String(), key: key, ls: ls}
		w.walk(reflect.ValueOf(file), "")
		out = append(out, w.out...)
	}
	return out, nil
}

// IsPolicyKey reports whether key is one of policy.toml, or a table of it.
func IsPolicyKey(key string) bool {
	for _, k := range PolicyKeys() {
		if name := strings.ReplaceAll(k.Name, "[]", ""); name == key || strings.HasPrefix(name, key+".") {
			return true
		}
	}
	return false
}

// ShowProxy is a proxy's address without its password.
func ShowProxy(proxy string) string {
	u, err := url.Parse(proxy)
	if err != nil {
		return "(not a URL)"
	}
	return u.Redacted()
}

type policyExplainer struct {
	file, layer, key string
	ls               strict.Lines
	out              []Explanation
}

func (w *policyExplainer) walk(v reflect.Value, prefix string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Tag.Get("toml") == "" {
			continue
		}
		key, x := prefix+f.Tag.Get("toml"), v.Field(i)
		if !w.ls.Has(key) {
			continue
		}
		if x.Kind() == reflect.Pointer {
			x = x.Elem()
		}
		switch caps, ok := x.Interface().([]capFile); {
		case ok:
			for i, c := range caps {
				w.add(fmt.Sprintf("%s[%d]", key, i), c.String(), "")
			}
		case typeName(x.Type()) != "":
			text := show(x)
			if key == "network.proxy" {
				text = ShowProxy(text)
			}
			w.add(key, text, f.Tag.Get("doc"))
		default:
			w.walk(x, key+".")
		}
	}
	if n, ok := v.Interface().(networkFile); ok && n.Off && !w.ls.Has("network.off") {
		w.add("network", "off", "no network at all")
	}
}

func (w *policyExplainer) add(key, value, doc string) {
	if w.key == "" || key == w.key || strings.HasPrefix(key, w.key+".") || strings.HasPrefix(key, w.key+"[") {
		w.out = append(w.out, Explanation{Key: key, Value: value, Layer: w.layer, Where: w.ls.Where(w.file, key), Doc: doc})
	}
}

// String is the ceiling in one line.
func (c capFile) String() string {
	scope, _ := strict.Texts(c.Scope)
	if len(scope) == 0 {
		return c.Cap
	}
	return c.Cap + " " + strings.Join(scope, ", ")
}
