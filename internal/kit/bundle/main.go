// Bundle builds the plugins that ship inside the binary: from plugins/NAME to
// plugins/dist/NAME. The description is made natively from the same sources,
// so that no module is ever run to list tools; a test compares it with what the
// module itself says. The output is the same on every machine with the same Go.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

// run builds every folder of plugins that has a manifest. It is started in the
// module's root.
func run(ctx context.Context) error {
	manifests, err := filepath.Glob("plugins/*/elf.toml")
	if err != nil || len(manifests) == 0 {
		return fmt.Errorf("no plugins/*/elf.toml here: start it in the module's root")
	}
	names := map[string]bool{}
	for _, m := range manifests {
		name := filepath.Base(filepath.Dir(m))
		names[name] = true
		if err := build(ctx, filepath.Dir(m), filepath.Join("plugins", "dist", name)); err != nil {
			return fmt.Errorf("plugin %q: %w", name, err)
		}
	}
	return prune(names)
}

// prune removes plugins that have no sources any more.
func prune(names map[string]bool) error {
	entries, err := os.ReadDir("plugins/dist")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() && !names[e.Name()] {
			if err := os.RemoveAll(filepath.Join("plugins", "dist", e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func build(ctx context.Context, source, dist string) error {
	tmp, err := os.MkdirTemp("", "elf-bundle-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	module := filepath.Join(tmp, "plugin.wasm")
	if _, err := goTool(ctx, []string{"GOOS=wasip1", "GOARCH=wasm"}, "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", module, "./"+source); err != nil {
		return err
	}
	wasm, err := os.ReadFile(module)
	if err != nil {
		return err
	}
	description, err := goTool(ctx, nil, "run", "-buildvcs=false", "./"+source, "-describe")
	if err != nil {
		return err
	}
	manifest, err := os.ReadFile(filepath.Join(source, "elf.toml"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dist, 0o755); err != nil {
		return err
	}
	sum := sha256.Sum256(wasm)
	digest := hex.EncodeToString(sum[:]) + "\n"
	// The digest goes last: a build that was interrupted is built again.
	if old, err := os.ReadFile(filepath.Join(dist, "digest")); err != nil || string(old) != digest {
		packed, err := pack(wasm)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dist, "plugin.wasm.gz"), packed, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%s: %.1f MB, %.1f MB packed\n", dist, float64(len(wasm))/1e6, float64(len(packed))/1e6)
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{"elf.toml", manifest}, {"describe.json", description}, {"digest", []byte(digest)}} {
		path := filepath.Join(dist, f.name)
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, f.data) {
			continue // an untouched file keeps the build cache warm
		}
		if err := os.WriteFile(path, f.data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func goTool(ctx context.Context, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w", args[0], err)
	}
	return out, nil
}

func pack(data []byte) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	err = z.Close()
	return out.Bytes(), err
}
