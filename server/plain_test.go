package server

import (
	"strings"
	"testing"
)

// TestErrorsAreInTheWordsOfJSON: what is wrong with a message is told without Go's
// types, and by what it should be.
func TestErrorsAreInTheWordsOfJSON(t *testing.T) {
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"x"}`:                           `"the params of tools/call must be an object"`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[1]}`:                           `"the params of tools/call must be an object"`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`:                    `"in the params of tools/call, name must be a string"`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","_meta":7}}`: `"in the params of tools/call, _meta must be an object"`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope"}}`:               `unknown tool \"nope\": the tools are run_code, install_packages, list_runtimes`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":5}}`:                 `"in the params of resources/read, uri must be a string"`,
		`{"jsonrpc":"2.0","id":1,"method":7}`:                                                   `"not a JSON-RPC message: its method must be a string"`,
		`{"jsonrpc":2,"id":1,"method":"ping"}`:                                                  `"not a JSON-RPC message: jsonrpc must be \"2.0\""`,
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`:                                             `"not a JSON-RPC message: its id must be a string or a whole number"`,
		`"x"`: `"not a JSON-RPC message: it must be an object"`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":{"code":1}}}`: `code must be a string, got a number`,
	} {
		said := converse(t, initialize+"\n"+line+"\n")
		_, said, _ = strings.Cut(said, "\n")
		if !strings.Contains(said, want) || strings.Contains(said, "Go ") || strings.Contains(said, "unmarshal") || strings.Contains(said, "mcp.") {
			t.Errorf("%s is answered with %s, want %s", line, said, want)
		}
	}
}
