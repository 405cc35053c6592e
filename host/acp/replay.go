package acp

import (
	"context"
	"encoding/base64"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/agent"
)

// replay tells a client all that was said and done, as it was told at the time.
func (ses *session) replay(ctx context.Context) error {
	records, err := ses.History(ctx)
	if err != nil {
		return err
	}
	c := ses.client
	defer c.reset()
	var plan []agent.PlanEntry
	planned := false
	for _, r := range records {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch r.Kind {
		case agent.RecordMessage:
			if r.Own || r.Message == nil { // the loop's own words to the model
				continue
			}
			user := r.Message.Role == "user"
			for _, b := range r.Message.Blocks {
				switch {
				case b.Content != nil && user:
					c.echo(*b.Content)
				case b.Content != nil && b.Content.Type == abi.TypeText:
					c.say(b.Content.Text)
				case b.Thinking != nil:
					c.think(b.Thinking.Text)
				case b.Call != nil:
					c.announce(c.key("", b.Call.ID), b.Call.Name, argsOf(b.Call.Args))
					if p, ok := planOf(b.Call.Name, b.Call.Args); ok {
						plan, planned = p, true
					}
				}
			}
		case agent.RecordResult:
			if r.Result != nil {
				c.finish(c.key("", r.Result.ID), r.Result.Name, &r.Result.Result)
			}
		case agent.RecordCompact:
			c.think("The conversation was shortened here.\n")
		}
	}
	if planned {
		c.plan(plan)
	}
	return nil
}

// echo shows what the person said.
func (c *Client) echo(b abi.Content) {
	switch b.Type {
	case abi.TypeText:
		c.update(sdk.UpdateUserMessageText(c.srv.text(b.Text)))
	case abi.TypeImage:
		c.update(sdk.UpdateUserMessage(sdk.ImageBlock(base64.StdEncoding.EncodeToString(b.Data), b.MIMEType)))
	case abi.TypeResourceLink:
		c.update(sdk.UpdateUserMessage(sdk.ResourceLinkBlock(c.srv.line(b.Name, maxTitle), c.srv.line(b.URI, 2<<10))))
	case abi.TypeResource:
		if b.Resource != nil {
			c.update(sdk.UpdateUserMessage(sdk.ResourceLinkBlock(c.srv.line(b.Resource.URI, maxTitle), c.srv.line(b.Resource.URI, 2<<10))))
		}
	}
}
