package web

import "testing"

func TestPathsOfTheEndpoint(t *testing.T) {
	for path, ok := range map[string]bool{
		"/mcp": true, "/a/b-c_d.e~1": true, "/pages": true, "/metrics2": true,
		"": false, "mcp": false, "/": false, "/mcp/": false, "//mcp": false, "/a/../b": false, "/./a": false, "/a b": false,
		"/{x}": false, "GET /mcp": false, "/mcp?x": false, "/m%63p": false, "host/mcp": false,
		"/healthz": false, "/metrics": false, "/page/page.js": false, "/.well-known/x": false,
	} {
		if err := CheckPath(path); (err == nil) != ok {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestOriginsOfPages(t *testing.T) {
	for origin, ok := range map[string]bool{
		"https://chat.example.com": true, "http://localhost:3000": true, "https://chat.example.com/": true, "vscode-webview://x": true,
		"": false, "chat.example.com": false, "*": false, "null": false, "https://x/y": false, "https://u@x": false, "https://": false,
	} {
		if err := CheckOrigin(origin); (err == nil) != ok {
			t.Errorf("%q: %v", origin, err)
		}
	}
}
