//go:build wasip1

// Servlet is an mcp.run servlet, which is hyper-mcp's version 1.
package main

import (
	"encoding/json"

	"github.com/elfhost/elfhost/host/foreign/extism/testdata/wire"
)

func main() {}

type object = map[string]any

//go:wasmexport describe
func describe() int32 {
	if len(wire.Input()) > 0 {
		return wire.Fail("describe takes nothing")
	}
	text := object{"type": "object", "properties": object{"name": object{"type": "string"}}}
	return wire.Answer(object{"tools": []object{
		{"name": "time", "description": "Its arguments have a name, too.", "inputSchema": text},
		{"name": "files.list", "description": "Its name has a dot.", "inputSchema": object{"type": "object"}},
		{"name": "picture", "description": "A picture and a file.", "inputSchema": object{"type": "object"}},
		{"name": "broken", "description": "Fails.", "inputSchema": object{"type": "object"}},
		{"name": "secret_tool", "description": "Is skipped by the test.", "inputSchema": object{"type": "object"}},
	}})
}

//go:wasmexport call
func call() int32 {
	var q struct {
		Params struct {
			Name string `json:"name"`
			Args struct {
				Name string `json:"name"`
			} `json:"arguments"`
		} `json:"params"`
	}
	if err := json.Unmarshal(wire.Input(), &q); err != nil {
		return wire.Fail(err.Error())
	}
	text := func(s string, isError bool) int32 {
		return wire.Answer(object{"content": []object{{"type": "text", "text": s, "annotations": nil}}, "isError": isError})
	}
	switch q.Params.Name {
	case "time":
		if q.Params.Args.Name == "wrong" {
			return text("there is no time "+q.Params.Args.Name, true)
		}
		return text(q.Params.Args.Name+" in "+wire.Config("zone"), false)
	case "files.list":
		return text("a.txt", false)
	case "picture":
		return wire.Answer(object{"content": []object{
			{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
			{"type": "resource", "data": "AQID", "mimeType": "application/zip"},
		}})
	case "broken":
		return wire.Fail("the disk is on fire")
	}
	return wire.Fail("no tool " + q.Params.Name)
}
