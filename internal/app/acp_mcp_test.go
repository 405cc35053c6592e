package app_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

const mcpVerb = "__mcp-server"

// mcpServer answers with what its environment says.
func mcpServer() int {
	s := server.NewMCPServer("tides", "1")
	s.AddTool(mcp.NewTool("tell", mcp.WithDescription("Tells the tide.")), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("the tide is " + os.Getenv("TIDE") + os.Getenv("ELFHOST_TEST_SECRET")), nil
	})
	s.AddPrompt(mcp.NewPrompt("forecast", mcp.WithPromptDescription("Forecasts."), mcp.WithArgument("port", mcp.RequiredArgument())),
		func(_ context.Context, r mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return mcp.NewGetPromptResult("", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent("Forecast the tide of "+r.Params.Arguments["port"]))}), nil
		})
	if err := server.ServeStdio(s); err != nil {
		return 1
	}
	return 0
}

func TestServersOfTheEditor(t *testing.T) {
	t.Setenv("ELFHOST_TEST_SECRET", " and this is not for servers")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := newHouse(t)
	const tool = "mcp__My_Tides__tell"
	const command = "mcp__My_Tides__forecast"
	h.script("[[turn]]\nalways = true\nwhen = { prompt = 'Forecast the tide of Kiel' }\ntext = 'forecast for Kiel'\n", // servers start beside the first turn, which does not wait for them
		"[[turn]]\nalways = true\nwhen = { tool = '"+tool+"' }\ntext = 'It said: {{result}}'\n",
		"[[turn]]\nalways = true\nwhen = { offered = '"+tool+"' }\n[[turn.call]]\ntool = '"+tool+"'\n",
		"[[turn]]\nalways = true\ntext = 'not yet '\n")
	e := h.start()
	e.hello(sdk.ClientCapabilities{})
	id := e.open(sdk.McpServer{Stdio: &sdk.McpServerStdio{
		Name: "My Tides", Command: self, Args: []string{mcpVerb}, Env: []sdk.EnvVariable{{Name: "TIDE", Value: "high $HOME"}},
	}})
	for deadline := time.Now().Add(patience); !strings.Contains(e.said(), "It said") && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		e.ask(id, "which tide?")
	}
	if got := e.said(); !strings.HasSuffix(strings.TrimSpace(got), "the tide is high $HOME") {
		t.Errorf("the agent said %q", got)
	}
	for _, q := range e.questions {
		if text := questionText(q); !strings.Contains(text, "My_Tides") {
			t.Errorf("asked: %s", text)
		}
	}
	// Its prompts are commands.
	var hints []string
	for _, u := range e.all() {
		if u.Update.AvailableCommandsUpdate != nil {
			for _, c := range u.Update.AvailableCommandsUpdate.AvailableCommands {
				if c.Name == command && c.Input != nil {
					hints = append(hints, c.Input.Unstructured.Hint)
				}
			}
		}
	}
	if !slices.Contains(hints, "port") {
		t.Errorf("%s was not offered", command)
	}
	e.ask(id, "/"+command+" Kiel")
	if got := e.said(); !strings.Contains(got, "forecast for Kiel") {
		t.Errorf("the agent said %q", got)
	}
	if len(e.questions) == 0 {
		t.Error("a foreign tool ran without a question")
	}
	if _, err := e.conn.NewSession(e.ctx(), sdk.NewSessionRequest{Cwd: h.dir, McpServers: []sdk.McpServer{
		{Stdio: &sdk.McpServerStdio{Name: "x", Command: self, Args: []string{}, Env: []sdk.EnvVariable{{Name: "A=B", Value: ""}}}},
	}}); code(err) != -32602 {
		t.Errorf("a variable named A=B: %v", err)
	}
}
