package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/oci"
	"github.com/elfhost/elfhost/skillhub/pack"
	"github.com/elfhost/elfhost/skillhub/sign"
)

func pluginPublish(s streams) *cobra.Command {
	var replace, asJSON bool
	c := &cobra.Command{
		Use: "publish oci://HOST/REPOSITORY[:TAG] FILE.elfpkg", Short: "Publish a package in an OCI registry",
		Long: `Publish a package in an OCI registry, under its version as the tag where none is
given. A tag that names another package already is refused. Credentials are those
of the usual Docker configuration; credential helpers are not run (docs/oci.md).

A hub of static files is published to with elfhost hub publish.`,
		Example: `  elfhost plugin publish oci://registry.example.com/tools/fetch fetch-1.2.0.elfpkg`,
		Args:    exactly(2, "a registry's address and a package"),
		RunE: func(c *cobra.Command, args []string) error {
			ref, err := skillhub.ParseRef(args[0])
			if err != nil || ref.Kind != skillhub.OCI {
				return fault.New("E1001", "write oci://HOST/REPOSITORY[:TAG]; a hub in a folder is published to with `elfhost hub publish`", "%q is no address in an OCI registry", args[0])
			}
			return publish(c.Context(), s, ref, args[1], replace, asJSON)
		},
	}
	c.Flags().BoolVar(&replace, "replace", false, "let a tag that names another package name this one")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func publish(ctx context.Context, s streams, ref skillhub.Ref, file string, replace, asJSON bool) error {
	p, signer, err := publication(ctx, file)
	if err != nil {
		return fault.Wrap("E1606", "`elfhost plugin pack` makes a package of a folder, `elfhost plugin sign` signs it", fmt.Errorf("reading the package %q: %w", file, err))
	}
	defer p.close()
	p.Replace = replace
	if signer == nil {
		fmt.Fprintln(s.err, "elfhost: note: the package is not signed; who installs it cannot know whose it is")
	}
	a, err := openQuiet(ctx, s)
	if err != nil {
		return err
	}
	defer a.Close(context.WithoutCancel(ctx))
	r, err := a.Registries()
	if err != nil {
		return err
	}
	at, err := r.Push(ctx, ref, p.Publication)
	if err != nil {
		return app.RegistryFault(err)
	}
	if asJSON {
		return json.NewEncoder(s.out).Encode(map[string]string{"name": p.Manifest.Name, "version": p.Manifest.Version, "ref": at.String(), "digest": string(p.Digest)})
	}
	_, err = fmt.Fprintf(s.out, "published %s %s\n  elfhost install %s\n", p.Manifest.Name, term.Line(p.Manifest.Version), at)
	return err
}

// opened is a package that is to be published, with its file.
type opened struct {
	oci.Publication
	file *os.File
}

func (o opened) close() { o.file.Close() }

// publication reads an archive as installing it would, its signature included.
func publication(ctx context.Context, name string) (out opened, signer *sign.Signer, err error) {
	st, err := os.Stat(name)
	if err != nil {
		return out, nil, err
	}
	if !st.Mode().IsRegular() {
		return out, nil, errors.New("it is not an archive")
	}
	f, err := os.Open(name)
	if err != nil {
		return out, nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	sum := sha256.New()
	n := &counter{w: sum}
	c, err := pack.Unpack(ctx, io.TeeReader(f, n), nil, pack.Options{})
	if err != nil {
		return out, nil, err
	}
	if _, err = io.Copy(n, io.LimitReader(f, skillhub.MaxArchive)); err != nil {
		return out, nil, err
	}
	if signer, err = sign.Verify(c); err != nil {
		return out, nil, err
	}
	if _, err = f.Seek(0, io.SeekStart); err != nil {
		return out, nil, err
	}
	return opened{oci.Publication{Manifest: c.Manifest, Archive: f, Digest: skillhub.DigestSum(sum.Sum(nil)), Size: n.n}, f}, signer, nil
}

// counter counts what passes.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
