// Package control has the tools with which an agent steers its own work and
// reaches its person: Plan, Notify and slash_command.
package control

import (
	"context"
	"embed"

	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
)

//go:embed tools/*.md tools/*.json
var texts embed.FS

// Options say what the tools work on. The zero value works: plans nobody
// looks at, notifications that reach nobody.
type Options struct {
	// Plans keeps the plans; nil: one of these tools' own.
	Plans *Plans
	// Planned is told each new plan, for the front end. It must be safe for
	// concurrent use. Nil: nobody is told.
	Planned func(ctx context.Context, entries []Entry)
	// Notifier shows notifications; nil: nobody is notified.
	Notifier *Notifier
}

type room struct {
	Options
}

// Tools are Plan and Notify; slash_command is Commands.Tool.
func Tools(o Options) []host.Tool {
	if o.Plans == nil {
		o.Plans = &Plans{}
	}
	if o.Notifier == nil {
		o.Notifier = &Notifier{}
	}
	r := &room{o}
	return []host.Tool{
		&tool.Func{S: planSpec(), Run: r.plan},
		&tool.Func{S: notifySpec(), Run: r.notify},
	}
}
