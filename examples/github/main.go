// Github reads from GitHub's REST API. It shows several tools in one plugin,
// a secret that the plugin never sees, and answers that a model can page.
package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/elfhost/elfhost/pdk"
)

type repo struct {
	Owner string `json:"owner" desc:"The account, for example golang."`
	Repo  string `json:"repo" desc:"The repository, for example go."`
}

type issuesArgs struct {
	repo
	State  string   `json:"state,omitempty" enum:"open,closed,all" default:"open"`
	Labels []string `json:"labels,omitempty" desc:"Issues that have all of these labels."`
	Page   int      `json:"page,omitempty" min:"1" default:"1"`
}

type issueArgs struct {
	repo
	Number int `json:"number" desc:"The number of the issue or pull request." min:"1"`
}

type fileArgs struct {
	repo
	Path string `json:"path,omitempty" desc:"The file or folder; the top folder when left out."`
	Ref  string `json:"ref,omitempty" desc:"A branch, tag or commit; the default branch when left out."`
}

type searchArgs struct {
	Query string `json:"query" desc:"In GitHub's search syntax, for example 'repo:golang/go is:issue wasm'."`
	Kind  string `json:"kind,omitempty" enum:"issues,repositories,code" default:"issues" desc:"What to search; code needs a token."`
	Page  int    `json:"page,omitempty" min:"1" default:"1"`
}

func init() {
	pdk.Tool(pdk.Spec{Name: "github_issues", ReadOnly: true, Description: "Lists issues and pull requests of a GitHub repository, newest first, 30 on a page."}, issues)
	pdk.Tool(pdk.Spec{Name: "github_issue", ReadOnly: true, Description: "Reads one issue or pull request of a GitHub repository with its first 50 comments."}, issue)
	pdk.Tool(pdk.Spec{Name: "github_file", ReadOnly: true, Description: "Reads a file of a GitHub repository, or lists a folder."}, file)
	pdk.Tool(pdk.Spec{Name: "github_search", ReadOnly: true, Description: "Searches GitHub for issues and pull requests, repositories, or code."}, search)
}

func main() { pdk.Main() }

type issueJSON struct {
	Number   int    `json:"number"`
	Title    string `json:"title"`
	State    string `json:"state"`
	Body     string `json:"body"`
	Created  string `json:"created_at"`
	Comments int    `json:"comments"`
	HTMLURL  string `json:"html_url"`
	User     struct {
		Login string `json:"login"`
	} `json:"user"`
	Labels []struct {
		Name string `json:"name"`
	} `json:"labels"`
	PullRequest *struct{} `json:"pull_request"`
}

func (i issueJSON) line() string {
	kind := "issue"
	if i.PullRequest != nil {
		kind = "pull request"
	}
	var labels []string
	for _, l := range i.Labels {
		labels = append(labels, l.Name)
	}
	s := fmt.Sprintf("#%d %s (%s, %s, by %s, %s, %d comments", i.Number, i.Title, kind, i.State, i.User.Login, day(i.Created), i.Comments)
	if len(labels) > 0 {
		s += ", " + strings.Join(labels, ", ")
	}
	return s + ")"
}

func issues(ctx context.Context, in issuesArgs) (string, error) {
	q := url.Values{"state": {or(in.State, "open")}, "per_page": {"30"}, "page": {fmt.Sprint(max(in.Page, 1))}}
	if len(in.Labels) > 0 {
		q.Set("labels", strings.Join(in.Labels, ","))
	}
	var list []issueJSON
	if err := get(ctx, in.path("issues"), q, &list); err != nil {
		return "", err
	}
	var lines []string
	for _, i := range list {
		lines = append(lines, i.line())
	}
	return page(lines, in.Page, 30), nil
}

func issue(ctx context.Context, in issueArgs) (string, error) {
	at := in.path("issues", fmt.Sprint(in.Number))
	var i issueJSON
	if err := get(ctx, at, nil, &i); err != nil {
		return "", err
	}
	out := i.line() + "\n" + i.HTMLURL + "\n\n" + cut(i.Body)
	if i.Comments == 0 {
		return out, nil
	}
	var comments []issueJSON
	if err := get(ctx, at+"/comments", url.Values{"per_page": {"50"}}, &comments); err != nil {
		return "", err
	}
	for _, c := range comments {
		out += fmt.Sprintf("\n\n--- %s, %s\n%s", c.User.Login, day(c.Created), cut(c.Body))
	}
	if i.Comments > len(comments) {
		out += fmt.Sprintf("\n\n%d more comments are left out.", i.Comments-len(comments))
	}
	return out, nil
}

type entryJSON struct {
	Name, Path, Type string
	Size             int
	Encoding         string
	Content          string
}

func file(ctx context.Context, in fileArgs) (string, error) {
	q := url.Values{}
	if in.Ref != "" {
		q.Set("ref", in.Ref)
	}
	parts := append([]string{"contents"}, strings.FieldsFunc(in.Path, func(r rune) bool { return r == '/' })...)
	var one entryJSON
	var many []entryJSON
	if err := getEither(ctx, in.path(parts...), q, &one, &many); err != nil {
		return "", err
	}
	if one.Type == "" {
		var lines []string
		for _, e := range many {
			if e.Type == "dir" {
				e.Name += "/"
			}
			lines = append(lines, fmt.Sprintf("%s  %d bytes", e.Name, e.Size))
		}
		return strings.Join(lines, "\n"), nil
	}
	if one.Encoding != "base64" || one.Type != "file" {
		return "", pdk.Failf("%s is a %s of %d bytes, which GitHub does not send here; files up to 1 MB can be read.", one.Path, one.Type, one.Size)
	}
	b, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(one.Content, "\n", ""))
	if err != nil {
		return "", fmt.Errorf("reading %q: %w", one.Path, err)
	}
	if !utf8.Valid(b) {
		return "", pdk.Failf("%s is not a text file (%d bytes).", one.Path, one.Size)
	}
	return string(b), nil
}

func search(ctx context.Context, in searchArgs) (string, error) {
	kind := or(in.Kind, "issues")
	var found struct {
		Total int `json:"total_count"`
		Items []struct {
			issueJSON
			FullName    string `json:"full_name"`
			Description string `json:"description"`
			Stars       int    `json:"stargazers_count"`
			Path        string `json:"path"`
			Repository  struct {
				FullName string `json:"full_name"`
			} `json:"repository"`
		} `json:"items"`
	}
	q := url.Values{"q": {in.Query}, "per_page": {"20"}, "page": {fmt.Sprint(max(in.Page, 1))}}
	if err := get(ctx, "search/"+kind, q, &found); err != nil {
		return "", err
	}
	var lines []string
	for _, i := range found.Items {
		switch kind {
		case "repositories":
			lines = append(lines, fmt.Sprintf("%s (%d stars): %s", i.FullName, i.Stars, i.Description))
		case "code":
			lines = append(lines, fmt.Sprintf("%s %s\n  %s", i.Repository.FullName, i.Path, i.HTMLURL))
		default:
			lines = append(lines, i.line()+"\n  "+i.HTMLURL)
		}
	}
	return fmt.Sprintf("%d found.\n", found.Total) + page(lines, in.Page, 20), nil
}
