package app

import (
	"context"
	"errors"
	"io/fs"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/store"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/hub"
)

// Hubs are the hubs that the person added. Nothing is opened or fetched by it.
func (a *App) Hubs() (*hub.Set, error) {
	known, err := a.Paths.Hubs()
	if err != nil {
		return nil, fault.Wrap("E1002", "", err)
	}
	remotes := make([]hub.Remote, len(known))
	for i, h := range known {
		remotes[i] = hub.Remote{Name: h.Name, Location: h.Location, Root: h.Root}
	}
	return hub.NewSet(a.HubOptions(), remotes), nil
}

// HubOptions are how this session uses hubs: over its broker, under its policy.
func (a *App) HubOptions() hub.Options {
	return hub.Options{
		State: a.Paths.HubsState(), HTTP: a.HTTP, Offline: a.Offline(),
		Rights: func(g policy.Grant) (policy.Rights, error) {
			given, err := policy.New("a hub that you added", g)
			return policy.Rights{Grants: a.Policy.Private(given).Meet(a.Policy.Ceiling())}, err
		},
		Index: func(ctx context.Context) (*store.Index, error) { return store.OpenIndex(ctx, a.Paths.HubsIndex()) },
	}
}

// Offline says why this session uses no network; "" where it may.
func (a *App) Offline() string {
	switch {
	case a.opt.Offline:
		return "--offline was given"
	case a.Config.Offline:
		return "offline = true in config.toml"
	case a.Policy.Network().Off:
		return "the policy has network = \"off\""
	}
	return ""
}

// HubFault gives an error of a hub its code.
func HubFault(err error) error {
	var f *fault.Error
	switch {
	case err == nil || errors.As(err, &f) || errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, skillhub.ErrExpired):
		return fault.Wrap("E1604", "", err)
	case errors.Is(err, skillhub.ErrOffline):
		return fault.Wrap("E1605", "", err)
	case errors.Is(err, skillhub.ErrMismatch), errors.Is(err, skillhub.ErrRollback), errors.Is(err, hub.ErrUntrusted):
		return fault.Wrap("E1603", "`elfhost explain E1603` says what this can be", err)
	case errors.Is(err, hub.ErrAmbiguous), errors.Is(err, abi.ErrInvalid):
		return fault.Wrap("E1001", "", err)
	case errors.Is(err, skillhub.ErrNotFound):
		return fault.Wrap("E1601", "", err)
	case errors.Is(err, abi.ErrDenied):
		return fault.Wrap("E1203", "a hub is reached at the address that was added, and nowhere else", err)
	case errors.Is(err, abi.ErrUnavailable), errors.Is(err, abi.ErrLimit), errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap("E1602", "", err)
	case errors.Is(err, fs.ErrPermission):
		return fault.Wrap("E1501", "`elfhost doctor` checks the folders", err)
	}
	return fault.Wrap("E1602", "", err)
}
