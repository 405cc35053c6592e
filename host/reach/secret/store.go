package secret

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/reach/internal/state"
)

// Open keeps secrets in the system's keyring where one answers, else in
// a file of mode 0600 in dir. Nothing is opened before the first use.
func Open(dir string) *Vault {
	return &Vault{Store: &chosenStore{dir: dir}}
}

// fileSecrets keeps secrets in one file of mode 0600 in dir.
func fileSecrets(dir string) Store { return &fileStore{path: filepath.Join(dir, "secrets.json")} }

// chosenStore decides at its first use.
type chosenStore struct {
	dir   string
	once  sync.Once
	store Store
}

func (c *chosenStore) pick() Store {
	c.once.Do(func() {
		if c.store = fileSecrets(c.dir); keyringAnswers() {
			c.store = &keyringStore{names: filepath.Join(c.dir, "secret-names.json"), file: c.store}
		}
	})
	return c.store
}

func (c *chosenStore) Get(name string) (string, error) { return c.pick().Get(name) }
func (c *chosenStore) Set(name, value string) error    { return c.pick().Set(name, value) }
func (c *chosenStore) Delete(name string) error        { return c.pick().Delete(name) }
func (c *chosenStore) Names() ([]string, error)        { return c.pick().Names() }
func (c *chosenStore) Where() string                   { return c.pick().Where() }

// fileStore is a JSON object of names and values.
type fileStore struct{ path string }

func (f *fileStore) Where() string { return "the file " + f.path + " (mode 0600, not encrypted)" }

func (f *fileStore) Get(name string) (string, error) {
	all, err := f.load()
	if err != nil {
		return "", err
	}
	v, ok := all[name]
	if !ok {
		return "", abi.ErrNotFound
	}
	return v, nil
}

func (f *fileStore) Set(name, value string) error {
	return f.update(func(all map[string]string) error { all[name] = value; return nil })
}

func (f *fileStore) Delete(name string) error {
	return f.update(func(all map[string]string) error {
		if _, ok := all[name]; !ok {
			return abi.ErrNotFound
		}
		delete(all, name)
		return nil
	})
}

func (f *fileStore) Names() ([]string, error) {
	all, err := f.load()
	return slices.Sorted(maps.Keys(all)), err
}

func (f *fileStore) update(change func(map[string]string) error) error {
	unlock, err := state.Lock(f.path + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	all, err := f.load()
	if err != nil {
		return err
	}
	if err := change(all); err != nil {
		return err
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return state.Write(f.path, data)
}

// load refuses a file that others can read: the secrets in it are known by now.
func (f *fileStore) load() (map[string]string, error) {
	all := map[string]string{}
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	} else if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by others (mode %04o): set it to 0600 and change the secrets in it", f.path, info.Mode().Perm())
	}
	data, err := os.ReadFile(f.path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &all); err != nil {
		// The parser's message may quote a value.
		return nil, fmt.Errorf("%s is not a JSON object of names and values", f.path)
	}
	return all, nil
}

// keyringStore keeps values in the system's keyring, which cannot list them,
// and their names in a file beside. Values set before there was a keyring are
// still read from the file.
type keyringStore struct {
	names string
	file  Store
}

const keyringService = "elfhost"

func (k *keyringStore) Where() string { return "the system's keyring" }

func (k *keyringStore) Get(name string) (string, error) {
	v, err := keyring.Get(keyringService, name)
	if errors.Is(err, keyring.ErrNotFound) {
		return k.file.Get(name)
	}
	return v, err
}

func (k *keyringStore) Set(name, value string) error {
	err := keyring.Set(keyringService, name, value)
	if errors.Is(err, keyring.ErrSetDataTooBig) { // some take less than a log-in needs
		if err := keyring.Delete(keyringService, name); err != nil && !errors.Is(err, keyring.ErrNotFound) {
			return fmt.Errorf("taking what was there out of the keyring: %w", err)
		}
		return k.file.Set(name, value)
	}
	if err != nil {
		return fmt.Errorf("writing to the keyring: %w", err)
	}
	if err := k.file.Delete(name); err != nil && !errors.Is(err, abi.ErrNotFound) {
		return err
	}
	return k.index().Set(name, "")
}

func (k *keyringStore) Delete(name string) error {
	err := keyring.Delete(keyringService, name)
	if errors.Is(err, keyring.ErrNotFound) {
		err = k.file.Delete(name)
	}
	if err != nil {
		return err
	}
	if err := k.index().Delete(name); !errors.Is(err, abi.ErrNotFound) {
		return err
	}
	return nil
}

func (k *keyringStore) Names() ([]string, error) {
	here, err := k.index().Names()
	if err != nil {
		return nil, err
	}
	there, err := k.file.Names()
	if err != nil {
		return nil, err
	}
	all := append(here, there...)
	slices.Sort(all)
	return slices.Compact(all), nil
}

func (k *keyringStore) index() *fileStore { return &fileStore{k.names} }

// keyringAnswers asks for a name that is not there. Without a session bus
// nothing is asked: the library would start one.
func keyringAnswers() bool {
	if runtime.GOOS != "darwin" && runtime.GOOS != "windows" && !sessionBus() {
		return false
	}
	answer := make(chan bool, 1)
	go func() {
		_, err := keyring.Get(keyringService, "-")
		answer <- err == nil || errors.Is(err, keyring.ErrNotFound)
	}()
	select {
	case ok := <-answer:
		return ok
	case <-time.After(2 * time.Second): // a locked keyring waits for somebody
		return false
	}
}

func sessionBus() bool {
	if os.Getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return true
	}
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, "bus"))
	return err == nil
}
