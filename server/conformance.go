package server

//lint:file-ignore SA1019 The suite asks for what is deprecated as of 2026-07-28, too.

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What the official conformance suite wants of a server that it tests: tools, prompts and
// resources of these names, which answer so. They show nothing of Rillbox but its doors.

// addFixtures adds them to the SDK's server of a client.
func addFixtures(e *mcp.Server) {
	picture := &mcp.ImageContent{MIMEType: "image/png", Data: fromBase64("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==")}
	sound := &mcp.AudioContent{MIMEType: "audio/wav", Data: fromBase64("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=")}
	embedded := func(uri string) mcp.Content {
		return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "an embedded resource"}}
	}
	fixture := func(name string, handle mcp.ToolHandler) {
		e.AddTool(&mcp.Tool{Name: name, Description: "A fixture of the conformance suite", InputSchema: json.RawMessage(`{"type":"object"}`)}, handle)
	}
	fixed := func(name string, content ...mcp.Content) {
		fixture(name, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: content}, nil
		})
	}
	fixed("test_simple_text", saying("This is a simple text response for testing."))
	fixed("test_image_content", picture)
	fixed("test_audio_content", sound)
	fixed("test_embedded_resource", embedded("test://embedded-resource"))
	fixed("test_multiple_content_types", saying("text"), picture, embedded("test://embedded-in-multiple"))
	fixed("test_streaming_elicitation", saying("no requests"))
	fixture("test_error_handling", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{saying("This tool intentionally returns an error for testing")}}, nil
	})
	logs := func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			//lint:ignore SA1019 deprecated as of 2026-07-28, yet the suite asks for it
			if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: text}); err != nil {
				return nil, err
			}
		}
		return answered("logged")
	}
	fixture("test_tool_with_logging", logs)
	fixture("test_logging_tool", logs)
	fixture("test_tool_with_progress", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for _, done := range []float64{0, 50, 100} {
			if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: done, Total: 100}); err != nil {
				return nil, err
			}
		}
		return answered("done")
	})
	fixture("test_reconnection", func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
		return answered("sent after the stream was closed")
	})
	fixture("test_missing_capability", func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if has := req.ClientCapabilities(); has != nil && has.Sampling != nil {
			return answered("the client can sample")
		}
		return nil, &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client can't sample", Data: json.RawMessage(`{"requiredCapabilities":{"sampling":{}}}`)}
	})
	fixture("test_sampling", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var given struct{ Prompt string }
		if err := json.Unmarshal(req.Params.Arguments, &given); err != nil {
			return nil, err
		}
		//lint:ignore SA1019 deprecated as of 2026-07-28, yet the suite asks for it
		got, err := req.Session.CreateMessage(ctx, sampling(given.Prompt))
		if err != nil {
			return nil, err
		}
		return answered("LLM response: %s", saidIn(got.Content))
	})
	elicits := func(name, schema string) {
		fixture(name, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			got, err := req.Session.Elicit(ctx, elicitation(schema))
			if err != nil {
				return nil, err
			}
			return answered("Elicitation completed: action=%s, content=%v", got.Action, got.Content)
		})
	}
	elicits("test_elicitation", `"username":{"type":"string"},"email":{"type":"string"}`)
	elicits("test_elicitation_sep1034_defaults", `"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}`)
	elicits("test_elicitation_sep1330_enums", `"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
		"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
		"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
		"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
		"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}`)
	e.AddTool(&mcp.Tool{Name: "json_schema_2020_12_tool", Description: "A fixture of the conformance suite", InputSchema: json.RawMessage(`{
		"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","additionalProperties":false,
		"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
		"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
		"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
		"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]}}`)}, toGreet)
	e.AddTool(&mcp.Tool{Name: "test_x_mcp_header", Description: "A fixture of the conformance suite", InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`)}, toGreet)

	// Tools that ask for more before they answer (SEP-2322).
	asks := func(name, state string, requests mcp.InputRequestMap) {
		fixture(name, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			given := req.Params.RequestState
			if given != "" && given != state {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "this requestState is none of this server's"}
			}
			for key := range requests {
				if !isAccepted(req.Params.InputResponses[key]) {
					return &mcp.CallToolResult{InputRequests: requests, RequestState: state}, nil
				}
			}
			return answered("state-ok: %s", contents(req.Params.InputResponses))
		})
	}
	name, question, roots := elicitation(`"name":{"type":"string"}`), sampling("What is the capital of France?"), &mcp.ListRootsParams{}
	asks("test_input_required_result_elicitation", "", mcp.InputRequestMap{"user_name": name})
	asks("test_input_required_result_sampling", "", mcp.InputRequestMap{"capital_question": question})
	asks("test_input_required_result_list_roots", "", mcp.InputRequestMap{"client_roots": roots})
	asks("test_input_required_result_request_state", "asked", mcp.InputRequestMap{"confirm": elicitation(`"ok":{"type":"boolean"}`)})
	asks("test_input_required_result_tampered_state", "asked", mcp.InputRequestMap{"confirm": elicitation(`"ok":{"type":"boolean"}`)})
	asks("test_input_required_result_multiple_inputs", "asked", mcp.InputRequestMap{"user_name": name, "greeting": question, "client_roots": roots})
	fixture("test_input_required_result_multi_round", func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		switch req.Params.RequestState {
		case "":
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"step1": name}, RequestState: "one"}, nil
		case "one":
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"step2": elicitation(`"color":{"type":"string"}`)}, RequestState: "two"}, nil
		}
		return answered("%s", contents(req.Params.InputResponses))
	})
	fixture("test_input_required_result_capabilities", func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		requests := mcp.InputRequestMap{}
		if has := req.ClientCapabilities(); has != nil && has.Elicitation != nil {
			requests["user_name"] = name
		}
		if has := req.ClientCapabilities(); has != nil && has.Sampling != nil {
			requests["greeting"] = question
		}
		if len(requests) == 0 || len(req.Params.InputResponses) > 0 {
			return answered("%s", contents(req.Params.InputResponses))
		}
		return &mcp.CallToolResult{InputRequests: requests}, nil
	})

	prompt := func(name string, arguments []string, content func(map[string]string) mcp.Content) {
		p := &mcp.Prompt{Name: name, Description: "A fixture of the conformance suite"}
		for _, argument := range arguments {
			p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: argument, Required: true})
		}
		e.AddPrompt(p, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: content(req.Params.Arguments)}}}, nil
		})
	}
	prompt("test_simple_prompt", nil, func(map[string]string) mcp.Content { return saying("This is a simple prompt for testing.") })
	prompt("test_prompt_with_arguments", []string{"arg1", "arg2"}, func(given map[string]string) mcp.Content {
		return saying(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", given["arg1"], given["arg2"]))
	})
	prompt("test_prompt_with_embedded_resource", []string{"resourceUri"}, func(given map[string]string) mcp.Content { return embedded(given["resourceUri"]) })
	prompt("test_prompt_with_image", nil, func(map[string]string) mcp.Content { return picture })
	e.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "A fixture of the conformance suite"}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if !isAccepted(req.Params.InputResponses["user_context"]) {
			return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{"user_context": elicitation(`"context":{"type":"string"}`)}}, nil
		}
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: saying(contents(req.Params.InputResponses))}}}, nil
	})

	fixture("test_trigger_prompt_change", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		prompt("test_simple_prompt", nil, func(map[string]string) mcp.Content { return saying("changed") })
		return answered("changed")
	})

	read := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		content := &mcp.ResourceContents{URI: req.Params.URI, MIMEType: "text/plain", Text: "the content of " + req.Params.URI}
		switch {
		case req.Params.URI == "test://static-binary":
			content.MIMEType, content.Text, content.Blob = picture.MIMEType, "", picture.Data
		case strings.HasPrefix(req.Params.URI, "test://template/"):
			content.MIMEType, content.Text = "application/json", fmt.Sprintf(`{"id":%q}`, strings.Split(req.Params.URI, "/")[3])
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{content}}, nil
	}
	for _, name := range []string{"static-text", "static-binary", "watched-resource"} {
		e.AddResource(&mcp.Resource{Name: name, URI: "test://" + name}, read)
	}
	e.AddResourceTemplate(&mcp.ResourceTemplate{Name: "template", URITemplate: "test://template/{id}/data"}, read)
}

// isFixture says that a resource is none of Rillbox's.
func (s *Server) isFixture(uri string) bool {
	return s.o.Conformance && strings.HasPrefix(uri, "test://")
}

func toGreet(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return answered("hello")
}

func saying(text string) *mcp.TextContent { return &mcp.TextContent{Text: text} }

func answered(format string, args ...any) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{saying(fmt.Sprintf(format, args...))}}, nil
}

func fromBase64(text string) []byte {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(errors.New("a fixture is wrong: " + err.Error()))
	}
	return data
}

func sampling(prompt string) *mcp.CreateMessageParams {
	return &mcp.CreateMessageParams{Messages: []*mcp.SamplingMessage{{Role: "user", Content: saying(prompt)}}, MaxTokens: 100}
}

func elicitation(properties string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Message: "Tell us", RequestedSchema: json.RawMessage(`{"type":"object","properties":{` + properties + `}}`)}
}

func saidIn(content mcp.Content) string {
	if said, ok := content.(*mcp.TextContent); ok {
		return said.Text
	}
	return "no text"
}

// isAccepted says that a response has come, and is no refusal.
func isAccepted(response any) bool {
	given, ok := response.(*mcp.ElicitResult)
	return response != nil && (!ok || given.Action == "accept" && len(given.Content) > 0)
}

// contents are responses as text.
func contents(of mcp.InputResponseMap) string {
	b, err := json.Marshal(of)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
