// ImageAnalysis answers a question about a picture. It is a plugin: the
// picture's bytes are decoded in the sandbox, where a decompression bomb ends
// at the limits, and what the model gets was encoded anew, without metadata.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/pdk"
)

//go:embed prompt.md
var description string

//go:embed system.md
var system string

const (
	workspace = "/ws"
	maxFile   = 24 << 20 // bytes
	maxAnswer = 1_500    // tokens
)

type args struct {
	Path  string `json:"path" desc:"The picture: relative to the workspace, absolute inside it, or a file:// URI."`
	Query string `json:"query" desc:"What you want to know about the picture."`
	Cwd   string `json:"cwd,omitempty" desc:"The folder that a relative path starts from. The workspace by default."`
}

func init() {
	pdk.Tool(pdk.Spec{Name: "ImageAnalysis", Description: strings.TrimSpace(description), ReadOnly: true}, analyse)
}

func main() { pdk.Main() }

func analyse(ctx context.Context, in args) (abi.Result, error) {
	query := strings.TrimSpace(in.Query)
	if query == "" {
		return abi.Result{}, pdk.Failf("ImageAnalysis needs a query: what do you want to know about the picture?")
	}
	root, _ := pdk.Env(ctx, "ELFHOST_WORKSPACE") // without it only absolute paths are lost
	name, err := locate(in.Path, in.Cwd, root)
	if err != nil {
		return abi.Result{}, err
	}
	data, err := load(ctx, name)
	if err != nil {
		return abi.Result{}, err
	}
	pdk.Progress(ctx, abi.Progress{Message: "decoding " + path.Base(name)})
	p, err := prepare(data)
	if err != nil {
		return abi.Result{}, pdk.Failf("%s: %s", name, err)
	}
	pdk.Progress(ctx, abi.Progress{Message: "asking the model"})
	answer, err := pdk.Complete(ctx, pdk.Prompt{
		System:    system,
		Messages:  []pdk.Message{{Role: "user", Content: query}},
		Images:    []pdk.Image{{MIMEType: p.mime, Data: p.data}},
		MaxTokens: maxAnswer,
	})
	if err != nil {
		return abi.Result{}, pdk.Failf("The picture %s is %s, but %s", name, p.what, reason(err))
	}
	note := p.what
	if answer.Model != "" {
		note += "; seen by " + answer.Model
	}
	return abi.Textf("%s\n\n(%s: %s)", strings.TrimSpace(answer.Text), name, note), nil
}

// locate turns what a model writes into a path of the virtual root. root is
// where the workspace lies on the host, if that is known.
func locate(name, cwd, root string) (string, error) {
	name, err := clean(name, root)
	if err != nil {
		return "", err
	}
	if path.IsAbs(name) {
		return name, nil
	}
	dir := workspace
	if cwd != "" {
		if dir, err = clean(cwd, root); err != nil {
			return "", err
		}
		if !path.IsAbs(dir) {
			dir = path.Join(workspace, dir)
		}
	}
	return path.Join(dir, name), nil
}

// clean returns a relative path, or one under /ws.
func clean(name, root string) (string, error) {
	given := name
	if strings.HasPrefix(strings.ToLower(name), "file://") {
		u, err := url.Parse(name)
		if err != nil || u.Host != "" && u.Host != "localhost" {
			return "", pdk.Failf("%q is not a file:// URI of this machine.", given)
		}
		name = u.Path
	}
	if strings.TrimSpace(name) == "" {
		return "", pdk.Failf("ImageAnalysis needs the path of a picture.")
	}
	if root = strings.TrimRight(slash(root), "/"); root != "" {
		for _, form := range []string{slash(name), strings.TrimPrefix(slash(name), "/")} { // "/C:/x" in a URI
			if form == root || strings.HasPrefix(form, root+"/") {
				return path.Join(workspace, strings.TrimPrefix(form, root)), nil
			}
		}
	}
	if path.IsAbs(name) {
		if name = path.Clean(name); name != workspace && !strings.HasPrefix(name, workspace+"/") {
			return "", pdk.Failf("%q is outside the workspace. Give a path relative to the workspace.", given)
		}
	}
	return name, nil
}

func slash(s string) string { return strings.ReplaceAll(s, `\`, "/") }

func load(ctx context.Context, name string) ([]byte, error) {
	f, err := os.Open(pdk.Path(ctx, name))
	if err != nil {
		return nil, unreadable(name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, unreadable(name, err)
	case info.IsDir():
		return nil, pdk.Failf("%s is a folder. Name one picture in it.", name)
	case info.Size() > maxFile:
		return nil, pdk.Failf("%s has %d bytes, and ImageAnalysis reads up to %d MB. Scale it down first.", name, info.Size(), maxFile>>20)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, unreadable(name, err)
	}
	return data, nil
}

func unreadable(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return pdk.Failf("There is no file %s. Look for its name with Glob.", name)
	case errors.Is(err, fs.ErrPermission):
		return pdk.Failf("%s may not be read.", name)
	}
	return fmt.Errorf("reading %s: %w", name, err)
}

func reason(err error) string {
	detail := ""
	var e *pdk.Error
	if errors.As(err, &e) && e.Detail != "" {
		detail = " (" + e.Detail + ")"
	}
	switch {
	case errors.Is(err, abi.ErrUnavailable), errors.Is(err, abi.ErrUnsupported):
		return "no model is available that can look at it" + detail + "."
	case errors.Is(err, abi.ErrDenied):
		return "the model may not be used" + detail + "."
	case errors.Is(err, abi.ErrLimit), errors.Is(err, abi.ErrTooLarge):
		return "it is over this call's budget" + detail + "."
	}
	return "the model failed: " + err.Error()
}
