package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/host/archive"
	"github.com/elfhost/elfhost/host/store"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

func sessionVerb(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "session", Short: "List, show, go on with, write out, replay and delete sessions", Args: noArgs,
		Long: `What was said, called, answered and approved is kept, each part before the next
one acts on it: a session goes on where it was, whatever ended it. A name may be
given by its beginning.`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(sessionList(s), sessionShow(s), sessionResume(s), sessionExport(s), sessionDelete(s), sessionReplay(s))
	return c
}

// lookIntoArchive is withArchive for those who change nothing.
func lookIntoArchive(ctx context.Context, f func(*archive.Archive) error) error {
	return withArchive(ctx, func(a *archive.Archive, _ config.Paths) error {
		a.Look = true
		return f(a)
	})
}

// withArchive opens the sessions of this person for f.
func withArchive(ctx context.Context, f func(*archive.Archive, config.Paths) error) error {
	paths, err := config.FindPaths(os.Getenv)
	if err != nil {
		return fault.Wrap("E1002", "", err)
	}
	a := app.Archive(paths)
	err = app.SessionFault(f(a, paths))
	return errors.Join(err, a.Close(context.WithoutCancel(ctx)))
}

func sessionList(s streams) *cobra.Command {
	var dir string
	var all, asJSON bool
	var limit int
	c := &cobra.Command{
		Use: "list", Short: "List the sessions of this folder, the last used first", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			q := archive.Query{Limit: limit, Top: !all}
			if !all {
				origin, err := app.Workspace(dir)
				if err != nil {
					return err
				}
				q.Origin = origin
			}
			return lookIntoArchive(c.Context(), func(a *archive.Archive) error {
				found, err := a.List(c.Context(), q)
				if err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(s.out).Encode(append([]archive.Info{}, found...))
				}
				if len(found) == 0 {
					return noSessions(s.err, all)
				}
				return printSessions(s.out, found, all)
			})
		},
	}
	c.Flags().StringVarP(&dir, "dir", "C", "", "of this folder")
	c.Flags().BoolVar(&all, "all", false, "of all folders, and those that agents started")
	c.Flags().IntVar(&limit, "limit", 50, "at the most")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// noSessions says that a list is empty, beside the list.
func noSessions(w io.Writer, all bool) error {
	text := "there is no session yet"
	if !all {
		text = "there is no session of this folder; --all shows those of others"
	}
	_, err := fmt.Fprintf(w, "elfhost: note: %s\n", text)
	return err
}

func printSessions(w io.Writer, found []archive.Info, all bool) error {
	for _, m := range found {
		mark := ""
		if m.Busy {
			mark = " (at work)"
		}
		if all {
			mark += "  " + term.Line(m.Origin)
			if m.Parent != "" {
				mark += "  started by " + m.Parent
			}
		}
		if _, err := fmt.Fprintf(w, "%s  %s  %4d  %s%s\n", m.ID, m.Updated.Local().Format("2006-01-02 15:04"), m.Records, short(term.Line(m.Title), 60), mark); err != nil {
			return err
		}
	}
	return nil
}

func sessionShow(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "show ID", Short: "Show a session: what was said, called and approved", Args: exactly(1, "the name of a session"),
		RunE: func(c *cobra.Command, args []string) error {
			return lookIntoArchive(c.Context(), func(a *archive.Archive) error {
				m, err := a.Find(c.Context(), args[0])
				if err != nil {
					return err
				}
				lost, err := a.Unsettled(c.Context(), m.ID)
				if err != nil {
					return err
				}
				if asJSON {
					return json.NewEncoder(s.out).Encode(struct {
						archive.Info
						Unsettled []store.Lost `json:"unsettled"`
					}{m, append([]store.Lost{}, lost...)})
				}
				for _, l := range lost {
					whose := ""
					if l.Session != m.ID {
						whose = " of its sub-agent in " + l.Session
					}
					fmt.Fprintf(s.err, "elfhost: note: a call of %s (%s)%s was interrupted and may have had effects\n", term.Line(l.Tool), term.Line(l.ID), whose)
				}
				t, err := a.Load(c.Context(), m.ID)
				if err != nil {
					return err
				}
				return printTo(s.out, t.WriteMarkdown)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print what is known of it as JSON, without what was said")
	return c
}

// printTo writes what came from models and tools; on a terminal nothing in it
// may control it.
func printTo(w io.Writer, write func(io.Writer) error) error {
	if !term.IsTerminal(fileOf(w)) {
		return write(w)
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	_, err := io.WriteString(w, term.Lines(b.String()))
	return err
}

func transcript(ctx context.Context, a *archive.Archive, name string) (*archive.Transcript, error) {
	m, err := a.Find(ctx, name)
	if err != nil {
		return nil, err
	}
	return a.Load(ctx, m.ID)
}

func sessionResume(s streams) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use: "resume ID [PROMPT...]", Short: "Go on with a session, as `run -r ID` does",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return whichSession(c.Context(), s, f.dir)
			}
			f.kept.Resume = args[0]
			return f.run(c.Context(), s, strings.Join(args[1:], " "))
		},
	}
	f.flags(c)
	for _, name := range []string{"resume", "continue", "no-session"} {
		_ = c.Flags().MarkHidden(name) // they exist: flags sets them up
	}
	return c
}

// whichSession shows what can be gone on with where nobody said with which.
func whichSession(ctx context.Context, s streams, dir string) error {
	origin, err := app.Workspace(dir)
	if err != nil {
		return err
	}
	return lookIntoArchive(ctx, func(a *archive.Archive) error {
		found, err := a.List(ctx, archive.Query{Origin: origin, Top: true, Limit: 10})
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fault.New("E1505", "`elfhost session list --all` shows those of other folders", "there is no earlier session in %q", origin)
		}
		if err := printSessions(s.err, found, false); err != nil {
			return err
		}
		return fault.New("E1001", "give its name, or how that begins: `elfhost session resume "+found[0].ID[:min(12, len(found[0].ID))]+" PROMPT`; `elfhost run -c PROMPT` goes on with the first of them",
			"name the session to go on with")
	})
}

func sessionExport(s streams) *cobra.Command {
	var format, out string
	c := &cobra.Command{
		Use: "export ID", Short: "Write a session out, as JSON lines or Markdown", Args: exactly(1, "the name of a session"),
		Example: "  elfhost session export ses_abc -o session.jsonl\n  elfhost session export ses_abc --format markdown",
		RunE: func(c *cobra.Command, args []string) error {
			if format == "" && strings.HasSuffix(out, ".md") {
				format = "markdown"
			}
			if format != "" && format != "jsonl" && format != "markdown" {
				return fault.New("E1001", "", "--format is jsonl or markdown, not %q", format)
			}
			return lookIntoArchive(c.Context(), func(a *archive.Archive) error {
				t, err := transcript(c.Context(), a, args[0])
				if err != nil {
					return err
				}
				write := t.WriteJSONL
				if format == "markdown" {
					write = t.WriteMarkdown
				}
				if out == "" || out == "-" {
					return printTo(s.out, write)
				}
				if err := writeOutput(out, 0o600, write); err != nil { // transcripts are private
					return fault.New("E1001", "", "--output: %w", err)
				}
				return nil
			})
		},
	}
	c.Flags().StringVar(&format, "format", "", "jsonl or markdown; by default what the file's name says, else jsonl")
	c.Flags().StringVarP(&out, "output", "o", "", "into this file")
	return c
}

func sessionDelete(s streams) *cobra.Command {
	var older time.Duration
	c := &cobra.Command{
		Use: "delete [ID...]", Short: "Delete sessions and those that they started",
		Long: "Delete sessions, those that their agents started, and the outputs that were kept of them. There is no undo.",
		RunE: func(c *cobra.Command, args []string) error {
			if (len(args) == 0) == (older == 0) {
				return fault.New("E1001", "`elfhost session list` shows them", "name the sessions, or say --older")
			}
			if older < 0 {
				return fault.New("E1001", "", "--older is a time such as 720h, not %s", older)
			}
			return withArchive(c.Context(), func(a *archive.Archive, p config.Paths) error {
				ids, err := doomed(c.Context(), a, args, older)
				if err != nil {
					return err
				}
				for _, id := range ids {
					gone, err := a.Delete(c.Context(), id)
					switch {
					case errors.Is(err, archive.ErrNotFound): // with one before it
						continue
					case errors.Is(err, archive.ErrBusy) && older > 0:
						continue
					case err != nil:
						return err
					}
					for _, g := range gone {
						if err := os.RemoveAll(filepath.Join(p.State, "sessions", g)); err != nil {
							return fault.Wrap("E1501", "", err)
						}
						fmt.Fprintf(s.err, "elfhost: deleted %s\n", g)
					}
				}
				return nil
			})
		},
	}
	c.Flags().DurationVar(&older, "older", 0, "all that were not used for this long: 720h")
	return c
}

// doomed resolves all names before the first session is deleted.
func doomed(ctx context.Context, a *archive.Archive, names []string, older time.Duration) ([]string, error) {
	var out []string
	for _, n := range names {
		m, err := a.Find(ctx, n)
		if err != nil {
			return nil, err
		}
		out = append(out, m.ID)
	}
	const page = 500
	for off := 0; older > 0; off += page {
		found, err := a.List(ctx, archive.Query{Top: true, Limit: page, Offset: off})
		if err != nil || len(found) == 0 {
			return out, err
		}
		for _, m := range found {
			if time.Since(m.Updated) > older {
				out = append(out, m.ID)
			}
		}
	}
	return out, nil
}

func sessionReplay(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "replay ID|FILE", Short: "Run a session again with what was recorded, and name the first difference",
		Long: `Run a session through the agent's loop once more, with the recorded answers of
the model and the recorded results of the tools: nothing is asked and no tool is
entered. FILE is what ` + "`session export`" + ` wrote. Exit status 1: it went otherwise than recorded.`,
		Args: exactly(1, "the name of a session, or a file"),
		RunE: func(c *cobra.Command, args []string) error {
			return lookIntoArchive(c.Context(), func(a *archive.Archive) error {
				t, err := transcriptOrFile(c.Context(), a, args[0])
				if err != nil {
					return err
				}
				r, err := t.Replay(c.Context())
				if err != nil {
					return err
				}
				if asJSON {
					err = json.NewEncoder(s.out).Encode(r)
				} else {
					_, err = io.WriteString(s.out, howItWent(r))
				}
				if err == nil && r.Divergence != nil {
					return &exitStatus{fault.ExitFailed}
				}
				return err
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func transcriptOrFile(ctx context.Context, a *archive.Archive, name string) (*archive.Transcript, error) {
	if archive.CheckID(name) == nil {
		if _, err := os.Stat(name); err != nil {
			return transcript(ctx, a, name)
		}
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fault.New("E1001", "", "neither a session nor a file: %w", err)
	}
	defer f.Close()
	t, err := archive.ReadJSONL(f)
	if err != nil {
		return nil, fault.New("E1001", "`elfhost session export` writes such files", "reading %q: %w", name, err)
	}
	return t, nil
}

func howItWent(r archive.Replay) string {
	d := r.Divergence
	if d == nil {
		open := ""
		if r.Open > 0 {
			open = fmt.Sprintf(", %d of them without a result: the session is at work, or was cut off", r.Open)
		}
		return fmt.Sprintf("went as recorded: %d answers, %d calls%s\n", r.Answers, r.Calls, open)
	}
	return fmt.Sprintf("differs at record %d: %s\nrecorded: %s\nreplayed: %s\n", d.Record, term.Line(d.What),
		short(term.Line(d.Recorded), 400), short(term.Line(d.Replayed), 400))
}
