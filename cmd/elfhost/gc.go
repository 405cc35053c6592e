package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
)

func gcVerb(s streams) *cobra.Command {
	var older time.Duration
	var cache, dry bool
	c := &cobra.Command{
		Use: "gc", Short: "Clear caches and old clipped outputs", Args: noArgs,
		Long: "Remove the folders of sessions that nobody used for a while (clipped outputs, logs of commands), and the compiled\nmodules that were not used for as long; with --cache all of them. Grants, secrets, the audit log and installed packages stay.",
		RunE: func(c *cobra.Command, _ []string) error {
			paths, err := config.FindPaths(os.Getenv)
			if err != nil {
				return fault.Wrap("E1002", "", err)
			}
			g := collector{dry: dry, before: time.Now().Add(-older)}
			g.sessions(filepath.Join(paths.State, "sessions"))
			switch {
			case cache:
				g.remove(paths.Cache)
			case !dry:
				g.unused(filepath.Join(paths.Cache, "wasm"), older)
			}
			verb := "freed"
			if dry {
				verb = "would free"
			}
			fmt.Fprintf(s.out, "%s %s in %d folder(s)\n", verb, bytesText(g.bytes), g.folders)
			if g.err != nil {
				return fault.Wrap("E1501", "", g.err)
			}
			return nil
		},
	}
	c.Flags().DurationVar(&older, "older", 7*24*time.Hour, "sessions that were not used for this long")
	c.Flags().BoolVar(&cache, "cache", false, "all compiled modules, however young; they are made again when needed")
	c.Flags().BoolVar(&dry, "dry-run", false, "say what would be removed")
	return c
}

// collector removes folders and counts what they held.
type collector struct {
	dry     bool
	before  time.Time
	bytes   int64
	folders int
	err     error
}

func (g *collector) sessions(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		g.err = err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() && newest(path).Before(g.before) {
			g.remove(path)
		}
	}
}

// newest is the time of the youngest entry below dir.
func newest(dir string) time.Time {
	var t time.Time
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // what cannot be read does not count as young
		}
		if info, err := d.Info(); err == nil && info.ModTime().After(t) {
			t = info.ModTime()
		}
		return nil
	})
	return t
}

// unused removes compiled modules that were not used for since.
func (g *collector) unused(dir string, since time.Duration) {
	if _, err := os.Stat(dir); err != nil {
		return // nothing was compiled yet
	}
	p, err := sandbox.Prune(dir, since, -1)
	g.bytes += p.RemovedBytes
	if g.err == nil {
		g.err = err
	}
}

func (g *collector) remove(dir string) {
	if _, err := os.Lstat(dir); err != nil {
		return
	}
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				g.bytes += info.Size()
			}
		}
		return nil
	})
	g.folders++
	if !g.dry {
		if err := os.RemoveAll(dir); err != nil && g.err == nil {
			g.err = err
		}
	}
}
