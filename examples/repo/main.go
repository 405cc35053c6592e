// Repo asks one web API. It shows a request with a secret that the plugin
// never sees, a cache that outlives the call, and a setting.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/elfhost/elfhost/pdk"
)

const fresh = 10 * time.Minute

type args struct {
	Owner string `json:"owner" desc:"The account, for example golang."`
	Name  string `json:"name" desc:"The repository, for example go."`
}

type repository struct {
	FullName    string `json:"full_name"`
	Description string `json:"description"`
	Stars       int    `json:"stargazers_count"`
}

type cached struct {
	At   time.Time
	Repo repository
}

func init() {
	pdk.Tool(pdk.Spec{Name: "repo", Description: "Looks a repository up on GitHub.", ReadOnly: true}, repo)
}

func main() { pdk.Main() }

func repo(ctx context.Context, in args) (string, error) {
	key := in.Owner + "/" + in.Name
	var c cached
	if data, err := pdk.KVGet(ctx, key); err != nil || json.Unmarshal(data, &c) != nil || time.Since(c.At) > fresh {
		found, err := ask(ctx, in)
		if err != nil {
			return "", err
		}
		c = cached{time.Now(), found}
		if data, err = json.Marshal(c); err == nil {
			err = pdk.KVSet(ctx, key, data)
		}
		if err != nil {
			pdk.Log(ctx, pdk.LevelWarn, "not cached: "+err.Error())
		}
	}
	return fmt.Sprintf("%s: %s (%d stars)", c.Repo.FullName, c.Repo.Description, c.Repo.Stars), nil
}

func ask(ctx context.Context, in args) (repository, error) {
	header := pdk.Header{"Accept": {"application/vnd.github+json"}}
	if token, err := pdk.Secret(ctx, "github-token"); err == nil {
		header.Set("Authorization", "Bearer "+token) // it works without, but less often
	}
	var r repository
	res, err := pdk.Fetch(ctx, pdk.Request{
		URL:    "https://api.github.com/repos/" + url.PathEscape(in.Owner) + "/" + url.PathEscape(in.Name),
		Header: header, Timeout: 5 * time.Second, MaxBytes: 1 << 20,
	})
	switch {
	case err != nil:
		return r, err
	case res.Status == 404:
		return r, pdk.Failf("There is no public repository %s/%s. Check the spelling.", in.Owner, in.Name)
	case res.Status != 200:
		return r, pdk.Failf("GitHub answered with status %d. Try again later.", res.Status)
	}
	return r, json.Unmarshal(res.Body, &r)
}
