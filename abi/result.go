package abi

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Result is what every tool answers: MCP's content blocks, optionally with
// structured content. A tool's failure is a Result with IsError, not the end
// of the conversation.
type Result struct {
	Content    []Content       `json:"content"`
	Structured json.RawMessage `json:"structuredContent,omitempty"`
	IsError    bool            `json:"isError,omitempty"`
}

// Content is one block of a Result, or of a prompt. Type decides which other
// fields count: text (Text), image and audio (Data, MIMEType), resource_link
// (URI, Name, Title, Description, MIMEType), resource (Resource).
type Content struct {
	Type        string          `json:"type"`
	Text        string          `json:"text,omitempty"`
	Data        []byte          `json:"data,omitempty"` // base64 in JSON
	MIMEType    string          `json:"mimeType,omitempty"`
	URI         string          `json:"uri,omitempty"`
	Name        string          `json:"name,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Resource    *Resource       `json:"resource,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
}

// Resource is the body of a block of type "resource".
type Resource struct {
	URI      string `json:"uri"`
	MIMEType string `json:"mimeType,omitempty"`
	Text     string `json:"text,omitempty"`
	Blob     []byte `json:"blob,omitempty"`
}

// The values of Content.Type.
const (
	TypeText         = "text"
	TypeImage        = "image"
	TypeAudio        = "audio"
	TypeResource     = "resource"
	TypeResourceLink = "resource_link"
)

// Text makes a Result of one text block.
func Text(s string) Result { return Result{Content: []Content{TextBlock(s)}} }

// Textf is Text with a format.
func Textf(format string, args ...any) Result { return Text(fmt.Sprintf(format, args...)) }

// Errorf makes a Result that tells the model of a failure, in whole sentences.
func Errorf(format string, args ...any) Result {
	r := Textf(format, args...)
	r.IsError = true
	return r
}

// TextBlock makes a text block.
func TextBlock(s string) Content { return Content{Type: TypeText, Text: s} }

// Text joins the text blocks with newlines.
func (r Result) Text() string {
	var parts []string
	for _, c := range r.Content {
		if c.Type == TypeText {
			parts = append(parts, c.Text)
		}
	}
	return strings.Join(parts, "\n")
}
