//go:build wasip1

// Server is a plugin of hyper-mcp's version 2.
package main

import (
	"encoding/json"

	"github.com/elfhost/elfhost/host/foreign/extism/testdata/wire"
)

func main() {}

//go:wasmimport extism:host/user create_message
func createMessage(off uint64) uint64

//go:wasmimport extism:host/user create_elicitation
func createElicitation(off uint64) uint64

//go:wasmimport extism:host/user list_roots
func listRoots(off uint64) uint64

//go:wasmimport extism:host/user notify_progress
func notifyProgress(off uint64)

//go:wasmimport extism:host/user notify_tool_list_changed
func notifyTools(off uint64)

//go:wasmimport extism:host/user get_keyring_secret
func getSecret(off uint64) uint64

//go:wasmimport extism:host/user get_access_token
func getToken(off uint64) uint64

type object = map[string]any

func send(v any) uint64 {
	b, _ := json.Marshal(v)
	return wire.Put(b)
}

//go:wasmexport list_tools
func listTools() int32 {
	var q struct {
		Context struct {
			ID any `json:"id"`
		} `json:"context"`
		Request json.RawMessage `json:"request"`
	}
	if err := json.Unmarshal(wire.Input(), &q); err != nil || q.Context.ID == nil || q.Request != nil {
		return wire.Fail("list_tools gets the context alone")
	}
	any := object{"type": "object"}
	return wire.Answer(object{"tools": []object{
		{"name": "ask", "description": "Asks the model.", "inputSchema": any, "outputSchema": nil},
		{"name": "roots", "description": "Lists the roots.", "inputSchema": any, "annotations": object{"readOnlyHint": true}},
		{"name": "fetch", "description": "Fetches with a secret.", "inputSchema": any},
		{"name": "people", "description": "Asks people.", "inputSchema": any},
	}})
}

//go:wasmexport list_prompts
func listPrompts() int32 { return wire.Answer(object{"prompts": []object{}}) }

//go:wasmexport list_resources
func listResources() int32 {
	return wire.Answer(object{"resources": []object{{"uri": "demo:one", "name": "one"}}})
}

//go:wasmexport read_resource
func readResource() int32 {
	var q struct {
		Request struct {
			URI string `json:"uri"`
		} `json:"request"`
	}
	if err := json.Unmarshal(wire.Input(), &q); err != nil {
		return wire.Fail(err.Error())
	}
	return wire.Answer(object{"contents": []object{{"uri": q.Request.URI, "text": "the first"}}})
}

//go:wasmexport call_tool
func callTool() int32 {
	var q struct {
		Request struct {
			Name string         `json:"name"`
			Args map[string]any `json:"arguments"`
		} `json:"request"`
	}
	if err := json.Unmarshal(wire.Input(), &q); err != nil {
		return wire.Fail(err.Error())
	}
	text := func(b []byte) int32 {
		return wire.Answer(object{"content": []object{{"type": "text", "text": string(b)}}, "structuredContent": object{"ok": true}})
	}
	switch q.Request.Name {
	case "ask":
		notifyProgress(send(object{"progress": 1, "total": 2, "message": "asking"}))
		notifyTools(0)
		return text(wire.Take(createMessage(send(object{
			"messages": []object{{"role": "user", "content": object{"type": "text", "text": "how are you"}}}, "maxTokens": 10,
		}))))
	case "roots":
		return text(wire.Take(listRoots(0)))
	case "people":
		return text(append(wire.Take(createElicitation(send(object{"message": "?", "requestedSchema": object{"type": "object", "properties": object{"name": object{"type": "string"}}}}))), wire.Take(getToken(send(object{"client_id": "x"})))...))
	case "fetch":
		secret := wire.Take(getSecret(send(object{"service": "vault", "user": "me"})))
		if len(secret) == 0 {
			return wire.Fail("no secret")
		}
		_, body := wire.Get("https://api.example.org/", "Authorization", "Bearer "+string(secret))
		return text([]byte(body + " for " + string(secret)))
	}
	return wire.Fail("no tool " + q.Request.Name)
}
