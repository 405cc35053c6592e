package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/elfhost/elfhost/skillhub/pack"
	"github.com/elfhost/elfhost/skillhub/sign"
)

// packed packs a folder into an archive, signed with a key that it makes if
// need be: `packed DIR FILE [KEY]`.
func packed(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: packed DIR FILE [KEY]")
	}
	dir := ts.MkAbs(args[0])
	if len(args) == 3 {
		ts.Check(signFolder(dir, ts.MkAbs("keys"), args[2]))
	}
	var b bytes.Buffer
	_, err := pack.Folder(context.Background(), &b, os.DirFS(dir), pack.Options{})
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), b.Bytes(), 0o644))
}

func signFolder(dir, keys, name string) error {
	if _, err := sign.New(keys, name, ""); err != nil && !errors.Is(err, fs.ErrExist) && !strings.Contains(err.Error(), "exists") {
		return err
	}
	key, err := sign.Open(keys, name, "")
	if err != nil {
		return err
	}
	for _, old := range []string{pack.StatementFile, pack.SignatureFile} {
		if err := os.Remove(dir + "/" + old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	c, err := pack.Folder(context.Background(), &bytes.Buffer{}, os.DirFS(dir), pack.Options{})
	if err != nil {
		return err
	}
	statement, signature, err := sign.Make(c, key)
	return errors.Join(err, os.WriteFile(dir+"/"+pack.StatementFile, statement, 0o644), os.WriteFile(dir+"/"+pack.SignatureFile, signature, 0o644))
}
