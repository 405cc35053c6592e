package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/skillhub/hub"
	"github.com/elfhost/elfhost/skillhub/pack"
)

// published are the packages of the stage's hub.
var published = []map[string]string{
	{"elf.toml": "abi = \"elf/1\"\nname = \"changelog\"\nversion = \"1.2.0\"\ndescription = \"Keeps a changelog as keepachangelog.com has it.\"\n",
		"SKILL.md": "---\nname: changelog\ndescription: Use it when a change is to be written into a changelog.\n---\nAdd a line under Unreleased.\n"},
	{"elf.toml": "abi = \"elf/1\"\nname = \"commit-words\"\nversion = \"0.3.1\"\ndescription = \"How this team words commits and entries of a changelog.\"\n",
		"SKILL.md": "---\nname: commit-words\ndescription: Use it when a commit is made.\n---\nBegin with the package.\n"},
}

// openHub makes a hub in a folder, and adds it for the session.
func (s *stage) openHub(ctx context.Context) error {
	a := &hub.Author{Dir: filepath.Join(s.dir, "hub"), NoSync: true}
	root, err := a.Init(ctx, hub.InitOptions{})
	if err != nil {
		return err
	}
	var all []hub.Release
	for _, files := range published {
		r, err := s.release(ctx, files)
		if err != nil {
			return err
		}
		all = append(all, r)
	}
	if _, err := a.Publish(ctx, hub.PublishOptions{}, all...); err != nil {
		return err
	}
	o := s.HubOptions()
	offer, err := hub.Look(ctx, o, a.Dir, root)
	if err != nil {
		return err
	}
	if _, err := hub.Pin(ctx, o, "acme", a.Dir, offer); err != nil {
		return err
	}
	return s.Paths.UpdateHubs(func(in []config.Hub) ([]config.Hub, error) {
		return append(in, config.Hub{Name: "acme", Location: a.Dir, Root: root}), nil
	})
}

func (s *stage) release(ctx context.Context, files map[string]string) (hub.Release, error) {
	dir := fstest.MapFS{}
	for name, text := range files {
		dir[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	var b bytes.Buffer
	c, err := pack.Folder(ctx, &b, dir, pack.Options{})
	if err != nil {
		return hub.Release{}, err
	}
	file := filepath.Join(s.dir, pack.FileName(c.Manifest))
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		return hub.Release{}, err
	}
	return hub.ReadRelease(ctx, file)
}
