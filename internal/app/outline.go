package app

import (
	"path/filepath"

	"github.com/elfhost/elfhost/builtins/outline"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/internal/config"
)

// Grammars are the installed grammar packs and those of the binary. compiler
// is the program that compiles them, as Options.Compiler. Close them.
func Grammars(p config.Paths, compiler string) *outline.Packs {
	return &outline.Packs{
		Dir: filepath.Join(p.State, "grammars"), Cache: filepath.Join(p.Cache, "wasm", "code"), Compiler: compiler,
	}
}

func outlineTools(a *App) []host.Tool {
	packs := Grammars(a.Paths, a.opt.Compiler)
	o := outline.New(outline.Options{Tree: a.Tree, Self: a.opt.Compiler, Packs: packs})
	a.closing(packs.Close)
	a.closing(o.Close)
	return o.Tools()
}
