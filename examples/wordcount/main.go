// Wordcount reads files of the workspace with package os, reports its
// progress, and answers with a struct, which gives the tool an output schema.
package main

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/pdk"
)

type args struct {
	Paths []string `json:"paths" desc:"Files, relative to the workspace."`
	Unit  string   `json:"unit,omitempty" desc:"What to count." enum:"words,lines" default:"words"`
}

type answer struct {
	Total int            `json:"total"`
	Files map[string]int `json:"files" desc:"The count of each file."`
}

func init() {
	pdk.Tool(pdk.Spec{Name: "wordcount", Description: "Counts words or lines in files.", ReadOnly: true}, count)
}

func main() { pdk.Main() }

func count(ctx context.Context, in args) (answer, error) {
	out := answer{Files: map[string]int{}}
	for i, name := range in.Paths {
		pdk.Progress(ctx, abi.Progress{Message: name, Done: float64(i), Total: float64(len(in.Paths))})
		n, err := countFile(pdk.Path(ctx, name), in.Unit)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return out, pdk.Failf("There is no file %q in the workspace.", name)
		case errors.Is(err, fs.ErrPermission):
			return out, pdk.Failf("The file %q may not be read.", name)
		case err != nil:
			return out, err
		}
		out.Files[name] = n
		out.Total += n
	}
	return out, nil
}

func countFile(name, unit string) (n int, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	if unit != "lines" {
		lines.Split(bufio.ScanWords)
	}
	for lines.Scan() {
		n++
	}
	return n, lines.Err()
}
