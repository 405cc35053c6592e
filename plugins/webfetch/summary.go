package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/pdk"
)

const (
	summaryOver = 4 << 10   // bytes of text past which a page is summarised
	maxMaterial = 240 << 10 // bytes that the model is given: some 60,000 tokens
	maxAnswer   = 1_500     // tokens
)

//go:embed summary.md
var summaryPrompt string

// summarise replaces the text by the background model's answer where there is
// a question, or where the text is long. Without a model the text stays.
func (d *document) summarise(ctx context.Context, question string) {
	if d.text == "" || question == "" && len(d.text) <= summaryOver {
		return
	}
	task := "Summarise the page."
	if question != "" {
		task = "Answer from the page: " + question
	}
	material := clip(d.text, maxMaterial)
	pdk.Progress(ctx, abi.Progress{Message: fmt.Sprintf("asking the model about %d KB", (len(material)+1023)>>10)})
	answer, err := pdk.Complete(ctx, pdk.Prompt{
		System:    summaryPrompt,
		Messages:  []pdk.Message{{Role: "user", Content: fmt.Sprintf("%s\n\nURL: %s\nThe page's text follows.", task, d.at)}},
		Text:      material,
		MaxTokens: maxAnswer,
	})
	switch {
	case err != nil:
		d.notes = append(d.notes, reason(err)+" This is the whole text.")
		return
	case answer.Text == "":
		d.notes = append(d.notes, "The background model gave no answer. This is the whole text.")
		return
	}
	by := "the background model"
	if answer.Model != "" {
		by = answer.Model
	}
	d.notes = append(d.notes, fmt.Sprintf("%s wrote this from %d bytes of text; call again with raw for the page itself.", by, len(d.text)))
	if len(material) < len(d.text) {
		d.notes = append(d.notes, fmt.Sprintf("Only the first %d KB were read (truncated).", maxMaterial>>10))
	}
	d.text, d.summary = answer.Text, true
}

func reason(err error) string {
	switch {
	case errors.Is(err, abi.ErrUnavailable), errors.Is(err, abi.ErrUnsupported):
		return "No background model is available to summarise the page."
	case errors.Is(err, abi.ErrDenied):
		return "The background model may not be used to summarise the page."
	case errors.Is(err, abi.ErrLimit), errors.Is(err, abi.ErrTooLarge):
		return "The page is too long for this call's model budget."
	}
	return "The background model could not summarise the page."
}
