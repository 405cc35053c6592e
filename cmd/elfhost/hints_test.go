package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Whatever the program tells a person to type has to be there.
func TestHintsNameVerbs(t *testing.T) {
	root := newRoot(streams{})
	verbs := regexp.MustCompile("`elfhost ([a-z]+)(?: ([a-z]+))?")
	seen := 0
	err := filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Errorf("%s: %v", file, err)
			}
			for _, m := range verbs.FindAllStringSubmatch(text, -1) {
				if seen++; !typed(root, m[1], m[2]) {
					t.Errorf("%s tells people to type %q, which is no verb", file, strings.TrimPrefix(m[0], "`"))
				}
			}
			return true
		})
		return nil
	})
	if err != nil || seen < 50 {
		t.Errorf("%d hints, %v", seen, err)
	}
}

// typed reports whether a verb is there, and its own verb below it where it has any.
func typed(root *cobra.Command, verb, below string) bool {
	for _, v := range root.Commands() {
		if v.Name() != verb {
			continue
		}
		if below == "" || !v.HasSubCommands() {
			return true
		}
		for _, w := range v.Commands() {
			if w.Name() == below {
				return true
			}
		}
	}
	return verb == "help" || verb == "completion"
}
