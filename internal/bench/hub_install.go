package bench

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/hub"
	"github.com/elfhost/elfhost/skillhub/keep"
	"github.com/elfhost/elfhost/skillhub/pack"
)

// hubInstall measures the install of a 3 MB package from a hub in a folder,
// without what is compiled, against copying the file and working out its digest.
func hubInstall(ctx context.Context, w io.Writer) error {
	dir, err := os.MkdirTemp("", "elf-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "large-1.0.0"+skillhub.Ext)
	if err := largePackage(ctx, file); err != nil {
		return err
	}
	a, err := app.Open(ctx, app.Options{Dir: dir, Env: func(string) string { return "" }, Paths: &config.Paths{
		Config: filepath.Join(dir, "config"), State: filepath.Join(dir, "state"), Cache: filepath.Join(dir, "cache"), SystemPolicy: filepath.Join(dir, "none"),
	}})
	if err != nil {
		return err
	}
	defer a.Close(context.WithoutCancel(ctx))
	if err := folderHub(ctx, a, filepath.Join(dir, "hub"), file); err != nil {
		return err
	}
	var failed error
	const rounds = 15
	installs, copies := make([]time.Duration, 0, rounds), make([]time.Duration, 0, rounds)
	for range rounds {
		start := time.Now()
		failed = errors.Join(failed, installFrom(ctx, a, skillhub.Ref{Kind: skillhub.Named, Hub: "bench", Name: "large"}))
		installs = append(installs, time.Since(start))
		start = time.Now()
		failed = errors.Join(failed, copyAndSum(file, filepath.Join(dir, "copy")))
		copies = append(copies, time.Since(start))
		failed = errors.Join(failed, a.RemovePackage(ctx, "large"))
	}
	if failed != nil {
		return failed
	}
	took, peer := Median(installs), Median(copies)
	fmt.Fprintf(w, "install of a 3 MB package %v, cp and sha256 %v\n", took.Round(time.Microsecond), peer.Round(time.Microsecond))
	Figure(w, "install of 3 MB from a folder to cp and sha256", float64(took)/float64(peer), 10)
	return nil
}

// largePackage packs a text with 3 MB of resources that do not compress.
func largePackage(ctx context.Context, file string) error {
	body := make([]byte, 3<<20)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(body)
	m := pack.Memory{
		pack.ManifestFile: []byte("abi = \"elf/1\"\nname = \"large\"\nversion = \"1.0.0\"\n"),
		pack.SkillFile:    []byte("---\nname: large\ndescription: A large package.\n---\nText.\n"),
		"assets/data":     body,
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = pack.Write(ctx, f, m.Entries(), pack.Options{})
	return errors.Join(err, f.Close())
}

// folderHub publishes the package on a hub of its own, and makes it known.
func folderHub(ctx context.Context, a *app.App, dir, file string) error {
	author := &hub.Author{Dir: dir, NoSync: true}
	root, err := author.Init(ctx, hub.InitOptions{})
	if err != nil {
		return err
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	l := skillhub.Listing{Name: "large", Version: "1.0.0", Kind: skillhub.Text, Description: "A large package.", Digest: skillhub.DigestOf(b), Size: int64(len(b))}
	if _, err := author.Publish(ctx, hub.PublishOptions{}, hub.Release{Listing: l, Archive: file}); err != nil {
		return err
	}
	offer, err := hub.Look(ctx, a.HubOptions(), dir, root)
	if err != nil {
		return err
	}
	remote, err := hub.Pin(ctx, a.HubOptions(), "bench", dir, offer)
	if err != nil {
		return err
	}
	return a.Paths.UpdateHubs(func([]config.Hub) ([]config.Hub, error) {
		return []config.Hub{{Name: remote.Name, Location: remote.Location, Root: remote.Root}}, nil
	})
}

func installFrom(ctx context.Context, a *app.App, ref skillhub.Ref) error {
	c, err := a.Prepare(ctx, ref, app.InstallOptions{})
	if err != nil {
		return err
	}
	return errors.Join(c.Commit(ctx, nil, nil), c.Close())
}

func copyAndSum(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close())
	}
	if err := out.Close(); err != nil {
		return err
	}
	sum, err := os.Open(to)
	if err != nil {
		return err
	}
	defer sum.Close()
	_, err = io.Copy(sha256.New(), sum)
	return err
}

// hubStart measures how long `elfhost tools` takes with 200 installed packages,
// against 2.
func hubStart(ctx context.Context, w io.Writer) error {
	dir, err := os.MkdirTemp("", "elf-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "elfhost")
	build := exec.CommandContext(ctx, "go", "build", "-o", bin, "./cmd/elfhost")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building elfhost: %w", err)
	}
	var failed error
	homes := []string{filepath.Join(dir, "few"), filepath.Join(dir, "many")}
	for i, n := range []int{2, 200} {
		if err := fillStore(ctx, homes[i], n); err != nil {
			return err
		}
	}
	run := func(home string) func() {
		return func() {
			cmd := exec.CommandContext(ctx, bin, "call", "Glob", `{"pattern":"none"}`)
			cmd.Env, cmd.Dir = append(os.Environ(), "ELFHOST_HOME="+home), dir
			if out, err := cmd.CombinedOutput(); err != nil && failed == nil {
				failed = fmt.Errorf("elfhost call: %w: %s", err, out)
			}
		}
	}
	run(homes[0])()
	run(homes[1])()
	took := Times(21, 1, run(homes[1]), run(homes[0]))
	if failed != nil {
		return failed
	}
	fmt.Fprintf(w, "start with 200 packages %v, with 2 %v\n", took[0].Round(time.Microsecond), took[1].Round(time.Microsecond))
	Figure(w, "start with 200 installed packages to 2", float64(took[0])/float64(took[1]), 1.2)
	return nil
}

// tinyModule answers "hello" to every call.
var tinyModule = []byte("\x00asm\x01\x00\x00\x00\x01\x0e\x02\x60\x01\x7f\x01\x7f\x60\x04\x7f\x7f\x7f\x7f\x01\x7e\x03\x03\x02\x00\x01\x05\x03\x01\x00\x01" +
	"\x07\x21\x03\x06memory\x02\x00\x09elf_alloc\x00\x00\x08elf_call\x00\x01\x0a\x11\x02\x05\x00\x41\x80\x20\x0b\x09\x00\x42\x86\x80\x80\x80\x80\x02\x0b" +
	"\x0b\x0c\x01\x00\x41\x10\x0b\x06\x00hello")

// fillStore installs n packages with a tool each.
func fillStore(ctx context.Context, home string, n int) error {
	p, err := config.FindPaths(func(k string) string {
		if k == "ELFHOST_HOME" {
			return home
		}
		return ""
	})
	if err != nil {
		return err
	}
	a, err := app.Open(ctx, app.Options{Dir: filepath.Dir(home), Env: func(string) string { return "" }, Paths: &p})
	if err != nil {
		return err
	}
	defer a.Close(context.WithoutCancel(ctx))
	file := filepath.Join(filepath.Dir(home), "tool"+skillhub.Ext)
	for i := range n {
		m := pack.Memory{pack.ModuleFile: tinyModule, pack.ManifestFile: fmt.Appendf(nil, `abi = "elf/1"
name = "tool-%[1]d"
version = "1.0.0"
[[needs]]
cap = "fs.read"
scope = "/ws/docs/**"
reason = "it reads what you name"
[[tools]]
name = "tool_%[1]d"
description = "Looks up the answer to a question in the documents of this project, and quotes the place where it stands."
input = '{"type":"object","properties":{"question":{"type":"string","description":"The question, in whole sentences."},"limit":{"type":"integer","minimum":1,"maximum":50}},"required":["question"]}'
`, i)}
		f, err := os.Create(file)
		if err != nil {
			return err
		}
		_, err = pack.Write(ctx, f, m.Entries(), pack.Options{})
		if err = errors.Join(err, f.Close()); err == nil {
			err = installFrom(ctx, a, skillhub.Ref{Kind: skillhub.Local, Location: file})
		}
		if err != nil {
			return err
		}
	}
	st, err := app.Store(p).Load()
	if err == nil && len(st.Installed) != n {
		err = fmt.Errorf("%d of %d packages are installed: %w", len(st.Installed), n, keep.ErrStale)
	}
	return err
}
