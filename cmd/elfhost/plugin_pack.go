package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/pack"
	"github.com/elfhost/elfhost/skillhub/sign"
)

func pluginPack(s streams) *cobra.Command {
	var o pack.Options
	var out, key string
	c := &cobra.Command{
		Use: "pack [DIR]", Short: "Make a package of a folder: elf.toml, plugin.wasm, SKILL.md",
		Long: `Pack a folder to NAME-VERSION.elfpkg. The same files always give the same bytes.
What a module's tools are is asked of it, in a sandbox without rights, and packed
as describe.json. Hidden files, a module's sources and dependencies stay out.`,
		Args: atMostOne,
		RunE: func(c *cobra.Command, args []string) error {
			files, err := packFolder(c.Context(), s, folderArg(args), o)
			if err != nil {
				return err
			}
			return writePackage(c.Context(), s, files, out, key)
		},
	}
	fl := c.Flags()
	fl.BoolVar(&o.WithoutScripts, "without-scripts", false, "leave scripts out, rather than refuse the folder")
	fl.StringVarP(&out, "output", "o", "", "the file to write; NAME-VERSION.elfpkg in the current folder if left out")
	fl.StringVar(&key, "sign", "", "sign it with this key of yours")
	return c
}

// packFolder reads a folder, with the tools of its module described.
func packFolder(ctx context.Context, s streams, dir string, o pack.Options) (pack.Memory, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fault.Wrap("E1004", "", err)
	}
	defer root.Close()
	fail := func(err error) error {
		var scripts *pack.ScriptsError
		hint := ""
		if errors.As(err, &scripts) {
			hint = "--without-scripts packs the rest"
		}
		return fault.Wrap("E1320", hint, fmt.Errorf("packing %q: %w", dir, err))
	}
	var first bytes.Buffer
	packed, err := pack.Folder(ctx, &first, root.FS(), o)
	if err != nil {
		return nil, fail(err)
	}
	for _, l := range packed.Left {
		fmt.Fprintf(s.err, "elfhost: left out: %s\n", term.Line(l))
	}
	files := pack.Memory{}
	if _, err := pack.Unpack(ctx, &first, files, o); err != nil {
		return nil, fail(err)
	}
	delete(files, pack.StatementFile) // of an earlier time
	delete(files, pack.SignatureFile)
	if _, module := packed.File(pack.ModuleFile); !module {
		return files, nil
	}
	text, err := app.DescribeFolder(ctx, dir)
	if err != nil {
		return nil, fault.Wrap("E1302", "`elfhost plugin check` says more", fmt.Errorf("asking the module of %q for its tools: %w", dir, err))
	}
	if text != nil {
		files[pack.DescribeFile] = text
	}
	return files, nil
}

// writePackage packs files, and signs them if a key is named.
func writePackage(ctx context.Context, s streams, files pack.Memory, out, key string) error {
	var b bytes.Buffer
	c, err := pack.Write(ctx, &b, files.Entries(), pack.Options{})
	if err != nil {
		return fault.Wrap("E1320", "", err)
	}
	signed := "not signed"
	if key != "" {
		secret, err := openKey(ctx, s, key)
		if err != nil {
			return err
		}
		if files[pack.StatementFile], files[pack.SignatureFile], err = sign.Make(c, secret); err != nil {
			return fault.Wrap("E1321", "name a publisher in elf.toml, publisher = \"…\", and pack it again", err)
		}
		b.Reset()
		if c, err = pack.Write(ctx, &b, files.Entries(), pack.Options{}); err != nil {
			return fault.Wrap("E1320", "", err)
		}
		if _, err := sign.Verify(c); err != nil {
			return fault.Wrap("E1321", "", err)
		}
		signed = "signed by " + c.Manifest.Publisher + " with " + sign.Signer{Key: secret.Public()}.Short()
	}
	if out == "" {
		out = pack.FileName(c.Manifest)
	}
	if err := writeWhole(out, b.Bytes()); err != nil {
		return fault.Wrap("E1501", "", err)
	}
	_, err = fmt.Fprintf(s.out, "%s  %s  %s, %d files, %s\n", out, skillhub.DigestOf(b.Bytes()), bytesText(int64(b.Len())), len(c.Files), term.Line(signed))
	return err
}

// writeWhole replaces a file: nobody sees half of it.
func writeWhole(name string, b []byte) error {
	return writeOutput(name, 0o644, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

func pluginSign(s streams) *cobra.Command {
	var out, key string
	c := &cobra.Command{
		Use: "sign PACKAGE", Short: "Sign a package with a key of yours",
		Long: "Sign a .elfpkg file: name, version, publisher, code, needs, tool definitions and all files. A signature that it has is\nreplaced. The signature is minisign's, inside of the package.",
		Args: exactly(1, "one .elfpkg file"),
		RunE: func(c *cobra.Command, args []string) error {
			files, err := readPackageFile(c.Context(), args[0])
			if err != nil {
				return err
			}
			delete(files, pack.StatementFile)
			delete(files, pack.SignatureFile)
			if out == "" {
				out = args[0]
			}
			return writePackage(c.Context(), s, files, out, key)
		},
	}
	c.Flags().StringVar(&key, "key", sign.DefaultKey, "the name of the key")
	c.Flags().StringVarP(&out, "output", "o", "", "the file to write; the package itself if left out")
	return c
}

func readPackageFile(ctx context.Context, name string) (pack.Memory, error) {
	st, err := os.Stat(name)
	if err == nil && !st.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("it is not a regular file")}
	}
	if err != nil {
		return nil, fault.Wrap("E1320", "`elfhost plugin pack DIR` makes one of a folder", err)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fault.Wrap("E1320", "", err)
	}
	defer f.Close()
	files := pack.Memory{}
	if _, err := pack.Unpack(ctx, io.LimitReader(f, skillhub.MaxArchive+1), files, pack.Options{}); err != nil {
		return nil, fault.Wrap("E1320", "", fmt.Errorf("reading %q: %w", name, err))
	}
	return files, nil
}
