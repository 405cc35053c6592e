package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/skillhub"
)

// ErrRefusedUpload is what a hub's server says of a package that it does not take.
var ErrRefusedUpload = errors.New("the hub refused the package")

// uploadPath is where a hub's server takes packages.
const uploadPath = "/api/v1/packages"

// Upload publishes an archive on a hub that is served, with a publisher's token.
// The archive is checked here first. The token goes to this address alone, and
// only over TLS or within this machine.
func Upload(ctx context.Context, o Options, location, token, file string) (skillhub.Listing, error) {
	r, err := ReadRelease(ctx, file)
	if err != nil {
		return skillhub.Listing{}, err
	}
	if r.Key == "" {
		return skillhub.Listing{}, fmt.Errorf("%q: %w", file, ErrUnsigned)
	}
	if o.Offline != "" {
		return skillhub.Listing{}, fmt.Errorf("%s: %w", o.Offline, skillhub.ErrOffline)
	}
	target, rights, err := o.uploadTo(location)
	if err != nil {
		return skillhub.Listing{}, err
	}
	in, err := os.Open(file)
	if err != nil {
		return skillhub.Listing{}, err
	}
	defer in.Close()
	resp, err := o.HTTP.Do(ctx, rights, &reach.Request{
		Method: http.MethodPost, URL: target, Body: io.LimitReader(in, skillhub.MaxArchive),
		Header: http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/octet-stream"}},
		Limits: reach.HTTPLimits{Time: archiveTime, Body: maxDocument, Redirects: -1},
	})
	if err != nil {
		return skillhub.Listing{}, err
	}
	defer resp.Body.Close()
	return uploaded(resp)
}

// uploadTo is where an archive goes, with the right to send it there.
func (o *Options) uploadTo(location string) (string, policy.Rights, error) {
	u, err := policy.CheckURL(location)
	if err != nil {
		return "", policy.Rights{}, fmt.Errorf("%q is not a hub that somebody serves: %w: %w", location, err, abi.ErrInvalid)
	}
	if u.Scheme != "https" && !ownMachine(u) {
		return "", policy.Rights{}, fmt.Errorf("%q: a token goes over https only: %w", location, abi.ErrInvalid)
	}
	u.Path = strings.TrimSuffix(u.Path, "/") + uploadPath
	rights, err := o.Rights(policy.Grant{Cap: abi.NetHTTP, Scope: []string{u.Scheme + "://" + u.Host + " POST"}})
	return u.String(), rights, err
}

func ownMachine(u *url.URL) bool {
	a, err := netip.ParseAddr(u.Hostname())
	return err == nil && a.IsLoopback() || u.Hostname() == "localhost"
}

func uploaded(resp *reach.Response) (skillhub.Listing, error) {
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return skillhub.Listing{}, err
	}
	var said struct {
		skillhub.Listing
		Error string `json:"error"`
	}
	_ = json.Unmarshal(b, &said) // what is not of our server says nothing
	switch {
	case resp.Status == http.StatusCreated && said.Name != "":
		return said.Listing, nil
	case resp.Status >= 500:
		return skillhub.Listing{}, fmt.Errorf("%w: the server answered %d %.200q", abi.ErrUnavailable, resp.Status, said.Error)
	}
	return skillhub.Listing{}, fmt.Errorf("%w: %d %.200q", ErrRefusedUpload, resp.Status, said.Error)
}
