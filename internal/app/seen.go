package app

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// identity is what changes with a file's content, or with the file behind its
// name. Of the times one, ctime, is set by the system alone.
type identity struct {
	Dev   uint64 `json:"dev"`
	Ino   uint64 `json:"ino"`
	Size  int64  `json:"size"`
	MTime int64  `json:"mtime"` // ns
	CTime int64  `json:"ctime"` // ns
}

// fresh is how long after a change a file may change again without a trace in
// its times.
const fresh = 2 * time.Second

// modules remembers the digests of modules of elf/1 that were read and vetted
// in earlier sessions, so that a start reads none of them. What runs is decided
// by the digest, never by this file: code is kept under its digest, and bytes
// that are read are held against it.
type modules struct {
	path    string
	known   map[string]module
	changed bool
}

type module struct {
	identity
	Digest string `json:"digest"`
}

const (
	maxSeen     = 2000
	maxSeenFile = 2 << 20
)

// openModules reads what is remembered. A file that cannot be read is as good
// as none.
func openModules(path string) *modules {
	m := &modules{path: path, known: map[string]module{}}
	if b, err := readBounded(path, maxSeenFile); err == nil && json.Unmarshal(b, &m.known) != nil || m.known == nil {
		m.known = map[string]module{}
	}
	return m
}

// digest is that of a file that has not changed since it was remembered.
func (m *modules) digest(file string) (string, bool) {
	have, ok := m.known[file]
	if !ok {
		return "", false
	}
	st, err := os.Lstat(file)
	if err != nil || !st.Mode().IsRegular() {
		return "", false
	}
	now, ok := identify(st)
	return have.Digest, ok && now == have.identity
}

// keep remembers a file whose content is wasm. before is what it was when it
// was opened.
func (m *modules) keep(file string, before os.FileInfo, wasm []byte) {
	st, err := os.Lstat(file)
	if err != nil || before == nil || !st.Mode().IsRegular() {
		return
	}
	was, ok := identify(before)
	now, ok2 := identify(st)
	if !ok || !ok2 || was != now || now.Size != int64(len(wasm)) || time.Since(time.Unix(0, max(now.CTime, now.MTime))) < fresh {
		return
	}
	if len(m.known) >= maxSeen {
		clear(m.known)
	}
	sum := sha256.Sum256(wasm)
	m.known[file] = module{now, hex.EncodeToString(sum[:])}
	m.changed = true
}

// save writes what has been added. Another process's additions at the same
// moment may be lost: they are made again.
func (m *modules) save() error {
	if !m.changed {
		return nil
	}
	b, err := json.Marshal(m.known)
	if err != nil {
		return err
	}
	return putWhole(m.path, b)
}

// putWhole writes a file that appears whole, or not at all.
func putWhole(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".kept-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(b)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return err
}
