package app

import (
	"encoding/json"
	"fmt"
	"testing"
)

func TestFormOf(t *testing.T) {
	fields, risks, err := formOf(json.RawMessage(`{"type":"object","required":["age"],"properties":{
		"zoo":{"type":"string","minLength":2,"description":"which"}, "age":{"type":"integer","minimum":1}, "ok":{"type":"boolean","default":true},
		"colour":{"type":"string","enum":["r","b"],"enumNames":["red","blue"],"default":"b"},
		"titled":{"type":"string","oneOf":[{"const":"x","title":"The X"}]},
		"many":{"type":"array","items":{"type":"string","enum":["a","b","c"]},"maxItems":2},
		"apiToken":{"type":"string"}}}`))
	if err != nil || len(fields) != 7 || len(risks) != 1 {
		t.Fatalf("%d fields, %q, %v", len(fields), risks, err)
	}
	for i, c := range []struct{ name, text, want, def string }{
		{"zoo", "Berlin", "Berlin", ""}, {"zoo", "B", "", ""},
		{"age", "7", "7", ""}, {"age", "0", "", ""}, {"age", "7.5", "", ""}, {"age", "seven", "", ""}, {"age", "0x10", "", ""},
		{"ok", "yes", "true", "true"}, {"ok", "No", "false", "true"}, {"ok", "maybe", "", "true"},
		{"colour", "1", "r", "2"}, {"colour", "b", "b", "2"}, {"colour", "3", "", "2"},
		{"titled", "1", "x", ""}, {"many", "1, 3", "[a c]", ""}, {"many", "1,2,3", "", ""}, {"many", "9", "", ""},
	} {
		for _, f := range fields {
			if f.Name != c.name {
				continue
			}
			v, err := f.Read(c.text)
			if got := fmt.Sprint(v); (c.want == "") != (err != nil) || err == nil && got != c.want {
				t.Errorf("%d: %s %q: %v, %v", i, c.name, c.text, v, err)
			}
			if f.Default != c.def {
				t.Errorf("%s has the default %q", c.name, f.Default)
			}
		}
	}
	if fields[0].Name != "zoo" || fields[1].Name != "age" || !fields[1].Required || fields[0].Required {
		t.Error("the order, or what is required, is lost")
	}
	if _, _, err := formOf(json.RawMessage(`{"properties":[]}`)); err == nil {
		t.Error("a list as properties")
	}
}

func FuzzFormOf(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"type":"string","enum":["x"],"enumNames":[]}}}`), "1")
	f.Fuzz(func(t *testing.T, b []byte, text string) {
		fields, _, err := formOf(b)
		if err != nil {
			return
		}
		for _, x := range fields {
			_, _ = x.Read(text)
		}
	})
}
