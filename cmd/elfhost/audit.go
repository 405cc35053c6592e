package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/host/audit"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

func auditVerb(s streams) *cobra.Command {
	c := &cobra.Command{Use: "audit", Short: "Show and verify the log of what tools did", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(auditShow(s), auditVerify(s))
	return c
}

func auditShow(s streams) *cobra.Command {
	var f audit.Filter
	var asJSON bool
	var since time.Duration
	c := &cobra.Command{
		Use: "show", Short: "Print the records, oldest first", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			paths, err := config.FindPaths(os.Getenv)
			if err != nil {
				return fault.Wrap("E1002", "", err)
			}
			if since > 0 {
				f.Since = time.Now().Add(-since)
			}
			for r, err := range audit.Records(app.AuditDir(paths), f) {
				if err != nil {
					return fault.Wrap("E1502", "`elfhost audit verify` names the first bad record", err)
				}
				if c.Context().Err() != nil {
					return c.Context().Err()
				}
				if err := printRecord(s, r, asJSON); err != nil {
					return err
				}
			}
			return nil
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.Session, "session", "", "of this session")
	fl.StringVar(&f.Tool, "tool", "", "of this tool")
	fl.StringVar(&f.Plugin, "plugin", "", "of this plugin")
	fl.StringVar(&f.Event, "event", "", "verdict, use, receipt, grant or note")
	fl.StringVar(&f.Outcome, "outcome", "", "allowed or denied")
	fl.DurationVar(&since, "since", 0, "not older than this, for example 24h")
	fl.BoolVar(&asJSON, "json", false, "print each record as a line of JSON")
	return c
}

func printRecord(s streams, r audit.Record, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(s.out).Encode(r)
	}
	what := r.Tool
	switch r.Event {
	case audit.EventUse:
		// The words of a command are apart by NUL.
		what = strings.Join(strings.FieldsFunc(strings.Join([]string{what, r.Cap, r.Verb, r.Target}, "\x00"), func(c rune) bool { return c == 0 }), " ")
	case audit.EventVerdict:
		what += " " + short(r.Args, 80)
	case audit.EventReceipt:
		if r.Receipt != nil {
			what = strings.TrimPrefix(receiptLine(*r.Receipt), "receipt ")
		}
	}
	why := r.By
	for _, p := range []string{r.Rule, r.Where, r.Reason} {
		if p != "" {
			why += ", " + p
		}
	}
	line := term.Line(what)
	if why = strings.TrimPrefix(why, ", "); why != "" {
		line += "  (" + term.Line(why) + ")"
	}
	_, err := fmt.Fprintf(s.out, "%6d  %s  %-8s %-7s  %s\n", r.Seq, r.Time.Local().Format("2006-01-02 15:04:05"), r.Event, r.Outcome, line)
	return err
}

func auditVerify(s streams) *cobra.Command {
	var expect string
	var asJSON bool
	c := &cobra.Command{
		Use: "verify", Short: "Check that no record was changed, removed or reordered", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			paths, err := config.FindPaths(os.Getenv)
			if err != nil {
				return fault.Wrap("E1002", "", err)
			}
			rep, err := verifyAudit(paths, expect)
			if err != nil {
				return err
			}
			if asJSON {
				if err := json.NewEncoder(s.out).Encode(rep); err != nil {
					return err
				}
			}
			if rep.Bad != nil {
				return fault.New("E1502", "keep the file as it is: it is evidence", "%w", rep.Bad)
			}
			if !asJSON {
				_, err = fmt.Fprintf(s.out, "the audit log is whole: %d records in %d file(s), head %s\n", rep.Records, rep.Files, rep.Head)
			}
			return err
		},
	}
	c.Flags().StringVar(&expect, "expect", "", "a head that was noted earlier: the log must still hold it")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// verifyAudit makes nothing: where no key was made yet, there is no log either.
func verifyAudit(paths config.Paths, expect string) (audit.Report, error) {
	dir := app.AuditDir(paths)
	key, err := audit.ReadKey(app.AuditKeyFile(paths))
	if errors.Is(err, fs.ErrNotExist) {
		switch _, there := os.Stat(dir); {
		case there == nil:
			return audit.Report{}, fault.New("E1502", "bring the key back: nothing else tells whether the log is as it was written", "%w", err)
		case errors.Is(there, fs.ErrNotExist):
			return audit.Verify(dir, nil, expect)
		}
	}
	if err != nil {
		return audit.Report{}, fault.Wrap("E1501", "`elfhost doctor` checks the folders", err)
	}
	return audit.Verify(dir, key, expect)
}
