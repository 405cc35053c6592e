package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

// recordingVersion grows when a recording changes its meaning.
const recordingVersion = 1

// maxRecording bounds the file of one recorded call, in bytes.
const maxRecording = 256 << 20

// recorded is the file that `call --record` writes.
type recorded struct {
	V      int    `json:"v"`
	Engine string `json:"elfhost"` // that recorded it
	sandbox.Recording
}

// keepRecording writes what a call was told. The file holds what the module
// read, so that only its owner may.
func keepRecording(path string, rec *sandbox.Recording) error {
	if rec.Digest == "" {
		return fault.New("E1306", "`elfhost tools` shows which are plugins", "nothing was recorded: only a call that entered a plugin's module can be")
	}
	b, err := json.Marshal(recorded{recordingVersion, buildInfo().Version, *rec})
	if err != nil {
		return err
	}
	err = writeOutput(path, 0o600, func(w io.Writer) error {
		_, err := w.Write(append(b, '\n'))
		return err
	})
	if err != nil {
		return fault.New("E1501", "", "writing the recording: %w", err)
	}
	return nil
}

// parseRecording reads what keepRecording wrote, or what somebody says it did.
func parseRecording(b []byte) (*sandbox.Recording, error) {
	var r recorded
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("it is not a recording: %w", err)
	}
	switch {
	case r.V == 0 || r.Digest == "" || r.Tool == "":
		return nil, errors.New("it is not a recording: version, module or tool are missing")
	case r.V != recordingVersion:
		return nil, fmt.Errorf("it is a recording of version %d; this elfhost reads version %d", r.V, recordingVersion)
	}
	return &r.Recording, nil
}

func readRecording(path string) (*sandbox.Recording, error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() { // before the open: a FIFO would wait
		return nil, fault.New("E1306", "", "the recording %q is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.New("E1306", "", "the recording: %w", err)
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, fault.New("E1306", "", "the recording %q is not a regular file", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxRecording+1))
	if err == nil && len(b) > maxRecording {
		err = fmt.Errorf("over %d bytes", maxRecording)
	}
	if err != nil {
		return nil, fault.New("E1306", "", "the recording %q: %w", path, err)
	}
	rec, err := parseRecording(b)
	if err != nil {
		return nil, fault.New("E1306", "`elfhost call TOOL JSON --record FILE` makes one", "the recording %q: %w", path, err)
	}
	return rec, nil
}

// replayed is what `replay --json` prints.
type replayed struct {
	Plugin     string      `json:"plugin"`
	Tool       string      `json:"tool"`
	Digest     string      `json:"digest"`
	Same       bool        `json:"same"`
	HostCalls  int         `json:"hostCalls"`
	Fuel       int64       `json:"fuel"`
	Difference *difference `json:"difference,omitempty"`
}

type difference struct {
	HostCall int    `json:"hostCall"` // from 1; 0: the end
	Recorded string `json:"recorded"`
	Replayed string `json:"replayed"`
}

func replayVerb(s streams) *cobra.Command {
	var f sessionFlags
	var asJSON bool
	c := &cobra.Command{
		Use: "replay FILE", Short: "Run a recorded call again, and say whether it does the same",
		Long: `Run the module of a recorded call against the answers that were recorded.
Nothing of the world is touched: no file, no host, no clock. The module must ask
the same questions, give the same result and use the same fuel; else the first
difference is shown.`,
		Example: `  elfhost call WebFetch '{"url": "https://go.dev"}' --record fetch.json
  elfhost replay fetch.json`,
		Args: exactly(1, "the file of a recording"),
		RunE: func(c *cobra.Command, args []string) error {
			f.noInput = true
			rec, err := readRecording(args[0])
			if err != nil {
				return err
			}
			a, err := f.session(c.Context(), s, app.Options{})
			if err != nil {
				return err
			}
			defer a.Close(context.WithoutCancel(c.Context()))
			return replay(c.Context(), s, a, rec, asJSON)
		},
	}
	c.Flags().StringArrayVar(&f.plugins, "plugin", nil, "load the plugin in this folder (elf.toml, plugin.wasm) for this run")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func replay(ctx context.Context, s streams, a *app.App, rec *sandbox.Recording, asJSON bool) error {
	here := a.Packages()
	i := slices.IndexFunc(here, func(p app.Package) bool { return p.Digest == rec.Digest })
	if i < 0 {
		return fault.New("E1304", "--plugin FOLDER loads the one it was made with; `elfhost plugin list` shows the digests of those that are here",
			"the recording is of the module sha256 %.12s of %q, which is not here", rec.Digest, rec.Plugin)
	}
	row := replayed{Plugin: rec.Plugin, Tool: rec.Tool, Digest: rec.Digest, HostCalls: len(rec.Events), Fuel: rec.Fuel}
	plugin, err := a.OpenPlugin(ctx, here[i])
	if err != nil {
		return fault.Wrap("E1302", "", err)
	}
	err = plugin.Replay(ctx, rec)
	var diff *sandbox.Difference
	switch {
	case errors.As(err, &diff):
		row.Difference = &difference{diff.Event + 1, diff.Recorded, diff.Replayed}
	case err != nil:
		return fault.Wrap("E1503", "`elfhost doctor` checks the machine", fmt.Errorf("replaying: %w", err))
	default:
		row.Same = true
	}
	if asJSON {
		if err := json.NewEncoder(s.out).Encode(row); err != nil {
			return err
		}
	} else if row.Same {
		fmt.Fprintf(s.out, "the same: %s of %s, %d host calls, fuel %d\n", term.Line(row.Tool), term.Line(row.Plugin), row.HostCalls, row.Fuel)
	}
	if diff != nil {
		return fault.New("E1307", "", "%w", diff)
	}
	return nil
}
