package search

import (
	_ "embed"
	"fmt"
	"sort"
	"strings"
)

//go:embed types.txt
var typesText string

// fileTypes is the table of file types: name → globs.
func fileTypes() map[string][]string {
	types := make(map[string][]string)
	for _, line := range strings.Split(typesText, "\n") {
		if name, globs, ok := strings.Cut(line, ":"); ok {
			types[name] = strings.Fields(globs)
		}
	}
	return types
}

func typeGlobs(names []string) ([]*glob, error) {
	if len(names) == 0 {
		return nil, nil
	}
	types := fileTypes()
	var globs []*glob
	for _, name := range names {
		texts, ok := types[name]
		if !ok {
			return nil, fmt.Errorf("there is no file type %q; the types are %s", name, strings.Join(typeNames(types), ", "))
		}
		for _, text := range texts {
			g, err := compileGlob(text, globOptions{})
			if err != nil {
				return nil, err
			}
			globs = append(globs, g)
		}
	}
	return globs, nil
}

func typeNames(types map[string][]string) []string {
	var names []string
	for n := range types {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}
