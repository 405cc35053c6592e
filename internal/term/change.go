package term

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// changes are the arguments by which tools say what becomes of a file: what
// goes and what comes, in either dialect.
var changes = []struct{ goes, comes string }{
	{"old_string", "new_string"}, {"oldText", "newText"}, {"", "content"},
}

// change shows the arguments of an edit as what goes and what comes, each line
// with its sign, so that no text can pass for something else. ok is false for
// arguments of another form.
func change(raw string) (text string, ok bool) {
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(raw), &args) != nil {
		return "", false
	}
	str := func(key string) (s string, ok bool) {
		return s, json.Unmarshal(args[key], &s) == nil && len(args[key]) > 0 && args[key][0] == '"'
	}
	path, ok := str("path")
	if !ok || strings.ContainsAny(path, "\r\n") {
		return "", false
	}
	for _, c := range changes {
		comes, ok := str(c.comes)
		goes, had := str(c.goes)
		if !ok || !had && c.goes != "" {
			continue
		}
		rows := []string{"path: " + path}
		for _, key := range slices.Sorted(maps.Keys(args)) {
			if key != "path" && key != c.goes && key != c.comes {
				rows = append(rows, key+": "+string(args[key]))
			}
		}
		return strings.Join(append(rows, append(signed("- ", goes), signed("+ ", comes)...)...), "\n"), true
	}
	return "", false
}

func signed(sign, text string) (rows []string) {
	if text == "" {
		return nil
	}
	for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		rows = append(rows, sign+l)
	}
	return rows
}
