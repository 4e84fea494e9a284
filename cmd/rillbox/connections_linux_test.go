package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestConnectionsLeaveFilesForPrograms: who has no token can open as many as he likes.
func TestConnectionsLeaveFilesForPrograms(t *testing.T) {
	s := startHTTP(t, func(c *exec.Cmd) {
		c.Args = append([]string{"sh", "-c", `ulimit -n 256; exec "$0" "$@"`, c.Path}, c.Args[1:]...)
		c.Path = "/bin/sh"
	}, "--http", "127.0.0.1:0")
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	run := func() {
		t.Helper()
		const version = "2026-07-28"
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_code","arguments":{"language":"js","code":"console.log('here')"},` +
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
		r, err := http.NewRequest(http.MethodPost, s.url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json", "MCP-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": "run_code"} {
			r.Header.Set(name, value)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || !strings.Contains(string(text), `"stdout":"here\n"`) {
			t.Errorf("%s %v", text, err)
		}
	}
	run()
	for range 300 {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	for open, before := 0, -1; open < 128 || open != before; time.Sleep(200 * time.Millisecond) { // nobody tells when it took the last
		files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		open, before = len(files), open
	}
	run()
}
