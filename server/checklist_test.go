//go:build !windows

package server

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/workspace"
)

// checklist reads tool → dimension → words.
func checklist(text string) (map[string]map[string]string, error) {
	list, tool := map[string]map[string]string{}, ""
	for n, line := range strings.Split(text, "\n") {
		dimension, words, is := strings.Cut(strings.TrimPrefix(line, "\t"), ": ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, "\t"):
			tool = line
			list[tool] = map[string]string{}
		case !is || tool == "" || words == "":
			return nil, fmt.Errorf("line %d: %q", n+1, line)
		default:
			list[tool][dimension] = words
		}
	}
	return list, nil
}

// TestToolsChecklist: each tool tells what testdata/checklist.txt lists, and what each
// of its parameters means.
func TestToolsChecklist(t *testing.T) {
	text, err := os.ReadFile("testdata/checklist.txt")
	if err != nil {
		t.Fatal(err)
	}
	list, err := checklist(string(text))
	if err != nil {
		t.Fatal(err)
	}
	session, _ := openFiles(t, workspace.Options{})
	res, err := session.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range res.Tools {
		names = append(names, tool.Name)
	}
	if listed := slices.Sorted(maps.Keys(list)); !slices.Equal(listed, names) {
		t.Errorf("the checklist has %v, the server %v", listed, names)
	}
	for _, tool := range res.Tools {
		for _, wrong := range unsaid(tool, list[tool.Name], names) {
			t.Errorf("%s: %s", tool.Name, wrong)
		}
	}
}

// unsaid is what a tool does not say.
func unsaid(tool *mcp.Tool, wanted map[string]string, names []string) (wrong []string) {
	said := tool.Description
	properties, _ := tool.InputSchema.(map[string]any)["properties"].(map[string]any)
	for name, schema := range properties {
		description, _ := schema.(map[string]any)["description"].(string)
		if len(description) == 0 && schema.(map[string]any)["enum"] == nil {
			wrong = append(wrong, "parameter "+name+" says nothing")
		}
		said += "\n" + description
	}
	for _, dimension := range []string{"effect", "limits", "when", "when not", "instead"} {
		words := wanted[dimension]
		if words == "" || !strings.Contains(said, words) {
			wrong = append(wrong, fmt.Sprintf("it does not say %s: %q", dimension, words))
		}
	}
	if !slices.ContainsFunc(names, func(other string) bool {
		return other != tool.Name && strings.Contains(wanted["instead"], other)
	}) {
		wrong = append(wrong, "it names no other tool")
	}
	return wrong
}

// TestChecklistFinds what is not said.
func TestChecklistFinds(t *testing.T) {
	all := map[string]string{"effect": "Does", "limits": "at most", "when": "For", "when not": "not for", "instead": "other_tool"}
	tool := func(description, parameter string) *mcp.Tool {
		return &mcp.Tool{Name: "tool", Description: description, InputSchema: map[string]any{
			"properties": map[string]any{"x": map[string]any{"description": parameter}},
		}}
	}
	names := []string{"tool", "other_tool"}
	const full = "Does at most. For this, not for that: other_tool."
	if wrong := unsaid(tool(full, "x"), all, names); len(wrong) > 0 {
		t.Errorf("of a good one it says %q", wrong)
	}
	if wrong := unsaid(tool(full, ""), all, names); len(wrong) != 1 {
		t.Errorf("of a parameter without words it says %q", wrong)
	}
	for dimension, words := range all {
		if wrong := unsaid(tool(strings.ReplaceAll(full, words, ""), "x"), all, names); len(wrong) == 0 {
			t.Errorf("without its %s it finds nothing", dimension)
		}
	}
	if wrong := unsaid(tool(full, "x"), all, []string{"tool"}); len(wrong) != 1 {
		t.Errorf("without another tool it says %q", wrong)
	}
}
