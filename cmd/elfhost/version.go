package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/abi"
)

// version is set by `make dist` through the linker; a plain build says what
// the version control system knows.
var version string

type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	ABI      string `json:"abi"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func versionVerb(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			v := buildInfo()
			if asJSON {
				return json.NewEncoder(s.out).Encode(v)
			}
			_, err := fmt.Fprintf(s.out, "elfhost %s (%s, %s, %s)\n", v.Version, v.ABI, v.Go, v.Platform)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func buildInfo() versionInfo {
	v := versionInfo{Version: version, ABI: abi.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if bi, ok := debug.ReadBuildInfo(); ok {
		for _, kv := range bi.Settings {
			if kv.Key == "vcs.revision" {
				v.Commit = kv.Value
			}
		}
	}
	if v.Version == "" {
		v.Version = "devel"
		if len(v.Commit) >= 12 {
			v.Version += "-" + v.Commit[:12]
		}
	}
	return v
}
