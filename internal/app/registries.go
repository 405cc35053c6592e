package app

import (
	"errors"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/skillhub/oci"
)

// Registries are the OCI registries, with this person's credentials. Nothing is
// sent by it.
func (a *App) Registries() (*oci.Registry, error) {
	known, err := oci.ReadCredentials(a.env)
	if err != nil {
		return nil, fault.Wrap("E1608", "docs/oci.md says which files are read", err)
	}
	return &oci.Registry{
		HTTP: a.HTTP, Credentials: known, Offline: a.Offline(),
		Rights: func(g policy.Grant) (policy.Rights, error) {
			given, err := policy.New("a registry that you named", g)
			return policy.Rights{Grants: a.Policy.Private(given).Meet(a.Policy.Ceiling())}, err
		},
	}, nil
}

// RegistryFault gives an error of a registry its code.
func RegistryFault(err error) error {
	var denied *policy.Denial
	switch {
	case errors.As(err, &denied) && denied.Where != "":
		return fault.Wrap("E1204", "see "+denied.Where, err)
	case errors.As(err, &denied):
		return fault.Wrap("E1203", "a registry is reached at the address that you named, and sends on to public addresses alone", err)
	case errors.Is(err, oci.ErrTaken):
		return fault.Wrap("E1606", "publish under another tag or version; --replace lets the tag name this package", err)
	case errors.Is(err, oci.ErrHelper):
		return fault.Wrap("E1608", "docs/oci.md shows how to log in to a file", err)
	case errors.Is(err, oci.ErrLogin):
		return fault.Wrap("E1608", "`docker login` or `skopeo login` log in; docs/oci.md says which files are read", err)
	}
	return HubFault(err)
}
