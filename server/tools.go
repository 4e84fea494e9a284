package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor/job"
	"rillbox/workspace"
)

// addTools registers the tools.
func (s *Server) addTools() {
	run := schemaFor[runArgs]()
	s.describeLanguages(run)
	run.Properties["packages"].Description += s.packageExamples()
	run.Properties["args"].Description = strings.Join(s.each(func(l job.LanguageInfo) string { return l.Arguments }), " or ") + "."
	timeout := run.Properties["timeout_seconds"]
	timeout.Minimum = new(minTimeout.Seconds())
	timeout.Maximum = new(s.limits.MaxTimeout.Seconds())
	timeout.Default = jsonNumber(s.limits.Timeout.Seconds())
	most := run.Properties["max_output_bytes"]
	most.Minimum, most.Maximum, most.Default = new(float64(minOutput)), new(float64(s.maxOutput())), jsonNumber(maxOutput)
	run.Properties["output"].Enum = []any{combined}
	// What may be one of two kinds has no type, for some clients can't read a union.
	run.Properties["files"].AdditionalProperties = &jsonschema.Schema{Description: `The text as a string, or the bytes as {"base64": "…"}.`}
	addTool[runArgs, runOutput](s, &mcp.Tool{
		Name:        "run_code",
		Title:       "Run code",
		Description: s.runDescription(),
		Annotations: &mcp.ToolAnnotations{DestructiveHint: s.granted(), OpenWorldHint: new(true)},
		InputSchema: run,
	}, s.runCode)

	install := schemaFor[installArgs]()
	install.Properties["packages"].MinItems = new(1)
	installed := outputFor[installOutput]()
	installed.Properties["packages"].Items = outputFor[job.Package]()
	addTool[installArgs, installOutput](s, &mcp.Tool{
		Name:         "install_packages",
		Title:        "Install packages",
		Description:  s.installDescription(),
		Annotations:  &mcp.ToolAnnotations{DestructiveHint: new(false), IdempotentHint: true, OpenWorldHint: new(true)},
		InputSchema:  install,
		OutputSchema: installed,
	}, s.installPackages)

	runtimes := outputFor[runtimesOutput]()
	runtimes.Properties["limits"].AdditionalProperties = nil // names say what they are
	addTool[runtimesArgs, runtimesOutput](s, &mcp.Tool{
		Name:  "list_runtimes",
		Title: "List runtimes",
		Description: "Lists the languages with their exact versions, " +
			"whether each is ready, and the limits and permissions in force. " +
			"For when a version or a limit matters: a normal run does not need it, and install_packages tells of a package. It fetches nothing.",
		Annotations:  &mcp.ToolAnnotations{ReadOnlyHint: true, DestructiveHint: new(false), IdempotentHint: true, OpenWorldHint: new(false)},
		OutputSchema: runtimes,
	}, s.listRuntimes)

	addTool[cancelArgs, cancelOutput](s, &mcp.Tool{
		Name:  "cancel_execution",
		Title: "Cancel an execution",
		Description: "Ends a run_code call of yours that still runs: its process is killed, or a session's cell interrupted with the state kept, and that call answers with the status cancelled and the output so far. " +
			"For stopping one before its timeout; reset_session stops all of a session's.",
		Annotations: &mcp.ToolAnnotations{DestructiveHint: new(true), IdempotentHint: true, OpenWorldHint: new(false)},
	}, s.cancelExecution)

	s.addSessionTools()
	s.addFileTools()
}

// schemaFor is T's schema. Lists are lists, never null, and a value of the
// guest's is anything; the package would infer a nullable list, and one of
// bytes.
func schemaFor[T any]() *jsonschema.Schema {
	schema, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[[]string]():        {Type: "array", Items: &jsonschema.Schema{Type: "string"}},
		reflect.TypeFor[json.RawMessage](): {Description: "Any JSON."},
		reflect.TypeFor[job.Status](): oneOf(job.Completed, job.Failed, job.TimedOut,
			job.OutOfMemory, job.Cancelled, job.Crashed),
		reflect.TypeFor[workspace.Kind](): oneOf(workspace.Regular, workspace.Folder, workspace.Link, workspace.Other),
	}})
	if err != nil { // T is one of this package's own types
		panic(fmt.Sprintf("schema of %T: %v", *new(T), err))
	}
	visit(schema, func(s *jsonschema.Schema) {
		// "or null" was inferred from pointers and slices: what is absent is left out.
		if len(s.Types) == 2 && s.Types[0] == "null" {
			s.Type, s.Types = s.Types[1], nil
		}
	})
	return schema
}

// visit calls change for all parts of a schema, the inner ones first.
func visit(s *jsonschema.Schema, change func(*jsonschema.Schema)) {
	if s == nil {
		return
	}
	visit(s.Items, change)
	for _, property := range s.Properties {
		visit(property, change)
	}
	change(s)
}

func oneOf[T ~string](values ...T) *jsonschema.Schema {
	schema := &jsonschema.Schema{Type: "string"}
	for _, v := range values {
		schema.Enum = append(schema.Enum, string(v))
	}
	return schema
}

// outputFor is T's schema for answers: names and types only, for every conversation
// pays for what tools/list says.
func outputFor[T any]() *jsonschema.Schema {
	schema := schemaFor[T]()
	visit(schema, func(s *jsonschema.Schema) {
		s.Required = nil
		if s.Properties != nil {
			s.AdditionalProperties = nil
		}
		if packages := s.Properties["packages"]; packages != nil { // install_packages tells what is in it
			packages.Items.Properties = nil
		}
	})
	return schema
}

// granted says whether the operator granted any permission: without one, run_code has
// nothing to destroy but its own directory.
func (s *Server) granted() *bool {
	granted := false
	for _, t := range s.o.Supervisor.Toolchains() {
		for _, flag := range t.Describe().Permissions {
			granted = granted || !strings.HasPrefix(flag, "--deny-")
		}
	}
	return &granted
}

func jsonNumber(f float64) json.RawMessage { return json.RawMessage(fmt.Sprint(f)) }

type tool struct {
	*mcp.Tool
	handle mcp.ToolHandler
}

// addTool registers a tool that takes In and answers with Out. Its schemas are made of
// these, where it has none.
func addTool[In, Out any](s *Server, t *mcp.Tool, handle func(context.Context, *mcp.CallToolRequest, In) (*mcp.CallToolResult, error)) {
	if t.InputSchema == nil {
		t.InputSchema = schemaFor[In]()
	}
	if t.OutputSchema == nil {
		t.OutputSchema = outputFor[Out]()
	}
	// The SDK marks the answers of this function only as a newer client wants them, and not
	// those of receive.
	s.tools = append(s.tools, tool{t, func(ctx context.Context, req *mcp.CallToolRequest) (given *mcp.CallToolResult, _ error) {
		defer func() {
			if p := recover(); p != nil {
				given = toolError(s.panicked(t.Name, p))
			}
		}()
		if !s.may(callerOf(ctx), t.Name) {
			return toolError(fmt.Errorf("the operator of this server does not allow %s: the tools in tools/list can be used", t.Name)), nil
		}
		args, err := decodeArgs[In](t.Name, req.Params.Arguments)
		if err != nil {
			recordOf(ctx).Status = StatusRefused
			return toolError(err), nil
		}
		if s.o.CallTime > 0 {
			limited, cancel := context.WithTimeoutCause(ctx, s.o.CallTime, fmt.Errorf("the call took longer than %v, waiting included: try again when the server has less to do", s.o.CallTime))
			defer cancel()
			ctx = limited
		}
		res, err := handle(ctx, req, args)
		if err != nil {
			record := recordOf(ctx)
			record.Status = cmp.Or(record.Status, statusOf(err))
			return toolError(err), nil
		}
		return res, nil
	}})
}

// answer is a tool's answer: its structured result, the same as text for models that
// see only that, and what else they see.
func answer(structured any, text string, more ...mcp.Content) *mcp.CallToolResult {
	return &mcp.CallToolResult{StructuredContent: structured, Content: append([]mcp.Content{&mcp.TextContent{Text: text}}, more...)}
}

// toolError is the answer of a tool that could not do what it was asked.
func toolError(err error) *mcp.CallToolResult {
	return &mcp.CallToolResult{
		IsError: true,
		Content: []mcp.Content{&mcp.TextContent{Text: job.ShowText(err.Error())}},
	}
}
