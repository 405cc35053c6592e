package app

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/foreign"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/policy/packages"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/direct"
	"github.com/elfhost/elfhost/skillhub/hub"
	"github.com/elfhost/elfhost/skillhub/keep"
	"github.com/elfhost/elfhost/skillhub/oci"
	packfile "github.com/elfhost/elfhost/skillhub/pack"
	"github.com/elfhost/elfhost/skillhub/sign"
)

// sources is the table of where packages come from, by the kind of reference.
var sources = map[skillhub.RefKind]func(*App, InstallOptions) (skillhub.Source, error){
	skillhub.Local: func(a *App, o InstallOptions) (skillhub.Source, error) {
		return direct.Files{Dir: a.Dir, Home: a.env("HOME"), WithoutScripts: o.WithoutScripts}, nil
	},
	skillhub.URL: func(a *App, _ InstallOptions) (skillhub.Source, error) {
		return direct.Web{HTTP: a.HTTP, Rights: a.personal}, a.online()
	},
	skillhub.Named: func(a *App, _ InstallOptions) (skillhub.Source, error) { return a.Hubs() },
	skillhub.OCI:   func(a *App, _ InstallOptions) (skillhub.Source, error) { return a.Registries() },
}

func (a *App) source(k skillhub.RefKind, o InstallOptions) (skillhub.Source, error) {
	s, ok := sources[k]
	if !ok {
		return nil, fmt.Errorf("this build cannot fetch from %s sources: %w", k, skillhub.ErrNotFound)
	}
	return s(a, o)
}

// online is an error where the network may not be used.
func (a *App) online() error {
	if why := a.Offline(); why != "" {
		return fmt.Errorf("%w: %s", skillhub.ErrOffline, why)
	}
	return nil
}

// personal are the rights for what a person typed, under the policy.
func (a *App) personal(g policy.Grant) (policy.Rights, error) {
	gs, err := policy.New("what you typed", g)
	if err != nil {
		return policy.Rights{}, err
	}
	return policy.Rights{Grants: a.Policy.Private(gs).Meet(a.Policy.Ceiling())}, nil
}

// place is the address that a package came from, as policies name it.
func (a *App) place(f skillhub.Fetched) string {
	r, err := skillhub.ParseRef(f.Source)
	if err != nil {
		return ""
	}
	return a.placeOf(r)
}

// placeOf is place for a reference. It is "" where only the hubs can tell.
func (a *App) placeOf(r skillhub.Ref) string {
	switch r.Kind {
	case skillhub.Local:
		return "file://" + filepath.ToSlash(r.Location)
	case skillhub.OCI:
		return oci.Place(r)
	case skillhub.URL:
		return r.Location
	}
	return a.hubAddress(r.Hub)
}

// Known are the facts that a reference alone tells. A path counts when it is
// read: it may be relative, or lead elsewhere.
func (a *App) Known(r skillhub.Ref) packages.Facts {
	f := packages.Facts{Name: r.Name, Version: r.Version, Partial: true}
	if r.Kind != skillhub.Local {
		f.Hub = a.placeOf(r)
	}
	return f
}

// moduleName names the file of a module that came alone.
func moduleName(r skillhub.Ref) string {
	base := path.Base(filepath.ToSlash(r.Location))
	base, _, _ = strings.Cut(base, ":")
	return foreign.PluginName(base) + ".wasm"
}

// judged is the error for a package that a policy refuses.
func (a *App) judged(r packages.Ruling) error {
	if err := r.Err(); err != nil {
		return fault.Wrap("E1204", "`elfhost policy explain` shows every rule that decides", err)
	}
	return nil
}

// installFault gives the errors of an install their codes.
func installFault(ref skillhub.Ref, err error) error {
	err = fmt.Errorf("installing %s: %w", ref, err)
	var scripts *packfile.ScriptsError
	switch {
	case errors.As(err, &scripts):
		return fault.Wrap("E1320", "--without-scripts installs the rest", err)
	case errors.Is(err, packfile.ErrRefused):
		return fault.Wrap("E1320", "", err)
	case errors.Is(err, sign.ErrSignature):
		return fault.Wrap("E1321", "do not install it; tell whoever publishes it", err)
	case errors.Is(err, sign.ErrPin):
		return fault.Wrap("E1321", "if you know from elsewhere that the key changed: `elfhost key forget PUBLISHER`, then install again", err)
	case errors.Is(err, keep.ErrLock):
		return fault.Wrap("E1323", "", err)
	case errors.Is(err, keep.ErrEdited):
		return fault.Wrap("E1323", "move the folder away, and install again", err)
	case ref.Kind == skillhub.Named:
		return HubFault(err)
	case ref.Kind == skillhub.OCI:
		return RegistryFault(err)
	case errors.Is(err, skillhub.ErrMismatch):
		return fault.Wrap("E1321", "do not install it; tell whoever publishes it", err)
	case errors.Is(err, skillhub.ErrNotFound):
		return fault.Wrap("E1324", "", err)
	case errors.Is(err, skillhub.ErrOffline):
		return fault.Wrap("E1605", "what is installed keeps working", err)
	case errors.Is(err, skillhub.ErrRollback):
		return fault.Wrap("E1322", "", err)
	case errors.Is(err, abi.ErrDenied):
		return fault.Wrap("E1204", "", err)
	case errors.Is(err, context.Canceled):
		return err
	}
	return fault.Wrap("E1325", "", err)
}

// hubAddress is where a hub of the person's is, as policies name it; "" where
// it is not known here.
func (a *App) hubAddress(name string) string {
	known, err := a.Paths.Hubs()
	if err != nil {
		return ""
	}
	for _, h := range known {
		switch {
		case h.Name != name:
		case hub.IsURL(h.Location):
			return h.Location
		default:
			return "file://" + filepath.ToSlash(h.Location)
		}
	}
	return ""
}
