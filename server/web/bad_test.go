package web

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var update = flag.Bool("update", false, "write the table of docs/http.md anew")

// wrong is a request that can't be served, with its answer.
type wrong struct {
	request string // what the documentation calls it
	send    string // what is sent; {session} is one of the sender's, {other} somebody else's
	status  int    // 0: the connection is closed without an answer
	says    string
	id      string   // of the message that is refused; empty if it has none, or it is not known
	header  string   // that the answer has
	held    []string // requests whose connections stay open, before
	before  int      // how often it is sent before, and served
	ended   bool     // the client sends no more
	timed   bool     // time has to pass, or must not
}

// call is a message with an ID.
func call(id int, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, id, method, params)
}

// meta is what the parameters of a message have since 2026-07-28.
func meta(version string) string {
	return `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
}

// send is a request as it is on the wire. Each pair of headers replaces those that a right
// one has, or leaves them out if the value is empty; a name that begins with + is one more.
func send(method, body string, headers ...string) string {
	lines := [][2]string{
		{"Host", "localhost"}, {"Authorization", "Bearer a"},
		{"Content-Type", "application/json"}, {"Accept", "application/json, text/event-stream"},
	}
	if method == http.MethodPost {
		lines = append(lines, [2]string{"Content-Length", fmt.Sprint(len(body))})
	}
	path := "/mcp"
	for i := 0; i < len(headers); i += 2 {
		name, value := headers[i], headers[i+1]
		if name == "path" {
			path = value
			continue
		}
		if more, ok := strings.CutPrefix(name, "+"); ok {
			lines = append(lines, [2]string{more, value})
			continue
		}
		for j, line := range lines {
			if line[0] == name {
				lines = append(lines[:j], lines[j+1:]...)
				break
			}
		}
		if value != "" {
			lines = append(lines, [2]string{name, value})
		}
	}
	text := method + " " + path + " HTTP/1.1\r\n"
	for _, line := range lines {
		text += line[0] + ": " + line[1] + "\r\n"
	}
	return text + "\r\n" + body
}

func post(body string, headers ...string) string { return send(http.MethodPost, body, headers...) }

// inSession is a request of a protocol session's.
func inSession(method, body string, headers ...string) string {
	return send(method, body, append([]string{sessionHeader, "{session}", versionHeader, older}, headers...)...)
}

// single is a request that stands for itself.
func single(body string, headers ...string) string {
	return post(body, append([]string{versionHeader, newer, "Mcp-Method", "tools/list"}, headers...)...)
}

var (
	list  = call(5, "tools/list", meta(newer))
	hello = call(1, "initialize", `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}`)
	list5 = call(5, "tools/list", "")
	large = strings.Repeat(" ", maxBody-len(list)) + list
	// waits is a call that goes on.
	waits = call(7, "tools/call", `"name":"run_code","arguments":{"language":"js","code":"wait"},"_meta":{"progressToken":1}`)
	// coming is a request whose body we have been promised.
	coming = strings.TrimSuffix(post(large, "Expect", "100-continue", "Authorization", "Bearer a"), large)
)

var wrongs = []wrong{
	{request: "No token", send: single(list, "Authorization", ""), status: 401, says: "send the token that you were given, in a header: Authorization: Bearer TOKEN", header: "WWW-Authenticate: Bearer realm=\"rillbox\""},
	{request: "A token that does not hold", send: single(list, "Authorization", "Bearer x"), status: 401, says: "this token does not hold, or no more: ask the operator for another", header: "WWW-Authenticate: Bearer realm=\"rillbox\", error=\"invalid_token\""},
	{request: "Another scheme than Bearer", send: single(list, "Authorization", "Basic YTph"), status: 401, says: "send the token that you were given, in a header: Authorization: Bearer TOKEN", header: "WWW-Authenticate: Bearer realm=\"rillbox\""},
	{request: "Two headers `Authorization`", send: single(list, "+Authorization", "Bearer b"), status: 400, says: "send one header Authorization, not several"},
	{request: "Two headers `Origin`, the first one right", send: single(list, "Origin", "http://localhost", "+Origin", "https://evil.example"), status: 400, says: "send one header Origin, not several"},
	{request: "Two headers `Mcp-Method`", send: single(list, "+Mcp-Method", "tools/call"), status: 400, says: "send one header Mcp-Method, not several"},
	{request: "Two versions", send: single(list, "+"+versionHeader, older), status: 400, says: "send one header Mcp-Protocol-Version, not several"},
	{request: "A page of another site", send: single(list, "Origin", "https://evil.example"), status: 403, says: "pages of \"https://evil.example\" may not call this server: its operator can add the origin to http_origins"},
	{request: "A page without an origin", send: single(list, "Origin", "null"), status: 403, says: "pages of \"null\" may not call this server: its operator can add the origin to http_origins"},
	{request: "A page of another port of the same host", send: single(list, "Origin", "http://localhost:1"), status: 403, says: "pages of \"http://localhost:1\" may not call this server: its operator can add the origin to http_origins"},
	{request: "A page of the same host, unencrypted where the server is encrypted or the other way round", send: single(list, "Origin", "https://localhost"), status: 403, says: "pages of \"https://localhost\" may not call this server: its operator can add the origin to http_origins"},
	{request: "A page of another site, of whose origin only `Sec-Fetch-Site` tells", send: single(list, "Sec-Fetch-Site", "cross-site"), status: 403, says: "a page of another site sent this: its origin must be one of http_origins"},
	{request: "A preflight of another site's page", send: send(http.MethodOptions, "", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST"), status: 403, says: "pages of \"https://evil.example\" may not call this server: its operator can add the origin to http_origins"},
	{request: "A host that is not this server's", send: single(list, "Host", "evil.example"), status: 403, says: "this server does not answer for the host \"evil.example\": use the address that it printed, or have its operator add the name to http_hosts"},
	{request: "A host that only begins like this server's", send: single(list, "Host", "localhost.evil.example:8848"), status: 403, says: "this server does not answer for the host \"localhost.evil.example:8848\": use the address that it printed, or have its operator add the name to http_hosts"},
	{request: "No host", send: single(list, "Host", ""), status: 400, says: "400 Bad Request: missing required Host header"},
	{request: "Two hosts", send: single(list, "+Host", "evil.example"), status: 400, says: "400 Bad Request"},
	{request: "Another path", send: single(list, "path", "/mcp/"), status: 404, says: "there is nothing at \"/mcp/\": MCP is at /mcp"},
	{request: "PUT", send: send(http.MethodPut, ""), status: 405, says: "MCP knows POST, GET and DELETE here, not PUT", header: "Allow: POST, GET, DELETE"},
	{request: "TRACE", send: send(http.MethodTrace, ""), status: 405, says: "MCP knows POST, GET and DELETE here, not TRACE", header: "Allow: POST, GET, DELETE"},
	{request: "HEAD", send: send(http.MethodHead, ""), status: 405, header: "Allow: POST, GET, DELETE"},
	{request: "No content type", send: single(list, "Content-Type", ""), status: 415, says: "send JSON in UTF-8, not compressed, with the header Content-Type: application/json"},
	{request: "A form", send: single(list, "Content-Type", "application/x-www-form-urlencoded"), status: 415, says: "send JSON in UTF-8, not compressed, with the header Content-Type: application/json"},
	{request: "Another charset than UTF-8", send: single(list, "Content-Type", "application/json; charset=utf-16"), status: 415, says: "send JSON in UTF-8, not compressed, with the header Content-Type: application/json"},
	{request: "A compressed body", send: single(list, "Content-Encoding", "gzip"), status: 415, says: "send JSON in UTF-8, not compressed, with the header Content-Type: application/json"},
	{request: "Only other answers are accepted", send: single(list, "Accept", "text/html"), status: 406, says: "answers are application/json or text/event-stream: name them in the header Accept"},
	{request: "A nonsensical Accept", send: single(list, "Accept", ";;q=,"), status: 406, says: "answers are application/json or text/event-stream: name them in the header Accept"},
	{request: "A body that is too large", send: single(" " + large), status: 413, says: "a request has 10 MiB at most: put data into a file of the session, with several calls of write_file"},
	{request: "The same, in chunks", send: single("", "Content-Length", "", "Transfer-Encoding", "chunked") + fmt.Sprintf("%x\r\n %s\r\n0\r\n\r\n", len(large)+1, large), status: 413, says: "a request has 10 MiB at most: put data into a file of the session, with several calls of write_file"},
	{request: "`initialize` that is too large: a session would keep it", send: post(call(1, "initialize", `"clientInfo":"`+strings.Repeat("x", maxParams)+`"`)), status: 413, says: "the parameters of \"initialize\" have 16401 bytes, and may have 16384: only a call of a tool may have more"},
	{request: "`logging/setLevel`, the same, in a batch with a tool's call", send: inSession(http.MethodPost, "["+call(1, "logging/setLevel", `"level":"`+strings.Repeat("x", maxParams)+`"`)+","+waits+"]", versionHeader, "2025-03-26"), status: 413, says: "the parameters of \"logging/setLevel\" have 16396 bytes, and may have 16384: only a call of a tool may have more"},
	{request: "A header that is too large", send: single(list, "X", strings.Repeat("x", maxHeader+4096)), status: 431, says: "431 Request Header Fields Too Large"},
	{request: "Too many headers", send: single(list, "X", "x"+strings.Repeat("\r\nX: x", maxHeader/4)), status: 431, says: "431 Request Header Fields Too Large"},
	{request: "An empty body", send: single(""), status: 400, says: "the body can't be read as JSON: unexpected end of JSON input: send one message of JSON-RPC"},
	{request: "No JSON", send: single("hello"), status: 400, says: "the body can't be read as JSON: invalid character 'h' looking for beginning of value: send one message of JSON-RPC"},
	{request: "JSON that ends early", send: single(`{"jsonrpc":"2.0","id":1`), status: 400, says: "the body can't be read as JSON: unexpected end of JSON input: send one message of JSON-RPC"},
	{request: "Two messages that are no batch", send: single(list + list), status: 400, says: "the body can't be read as JSON: invalid character '{' after top-level value: send one message of JSON-RPC"},
	{request: "100,000 brackets", send: single(strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)), status: 400, says: "the body can't be read as JSON: invalid character '[' exceeded max depth: send one message of JSON-RPC"},
	{request: "100,000 brackets in a message", send: single(call(5, "tools/list", `"x":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000))), status: 400, says: "the body can't be read as JSON: invalid character '[' exceeded max depth: send one message of JSON-RPC"},
	{request: "Another encoding than UTF-8", send: single(call(5, "tools/list", "\"x\":\"\xff\"")), status: 400, says: "the body can't be read as JSON: invalid UTF-8: send one message of JSON-RPC"},
	{request: "A NUL", send: single(call(5, "tools/list", "\"x\":\"\x00\"")), status: 400, says: "the body can't be read as JSON: invalid character '\\x00' in string literal: send one message of JSON-RPC"},
	{request: "JSON that is no message", send: single(`{"language":"js","code":"1"}`), status: 400, says: "the body is no message of JSON-RPC: send an object with jsonrpc (\"2.0\"), id (a number or a string), method and params"},
	{request: "JSON that is no object", send: single(`"hello"`), status: 400, says: "the body is no message of JSON-RPC: send an object with jsonrpc (\"2.0\"), id (a number or a string), method and params"},
	{request: "An id that is no whole number", send: single(`{"jsonrpc":"2.0","id":5.5,"method":"tools/list","params":{` + meta(newer) + `}}`), status: 400, says: "the id is a number that would come back as another: send a whole one of less than 2^53, or a string"},
	{request: "An id of 2^53 or more", send: inSession(http.MethodPost, `{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/list"}`), status: 400, says: "the id is a number that would come back as another: send a whole one of less than 2^53, or a string"},
	{request: "An id that is no string or number", send: single(`{"jsonrpc":"2.0","id":{},"method":"tools/list"}`), status: 400, says: "the body is no message of JSON-RPC: send an object with jsonrpc (\"2.0\"), id (a number or a string), method and params"},
	{request: "An answer to nothing, without an id", send: single(`{"jsonrpc":"2.0","result":{}}`), status: 400, says: "the body is no message of JSON-RPC: send an object with jsonrpc (\"2.0\"), id (a number or a string), method and params"},
	{request: "An unknown method", send: single(call(5, "nonsense", meta(newer)), "Mcp-Method", "nonsense"), status: 404, says: "JSON RPC not handled: \"nonsense\" unsupported", id: "5"},
	{request: "The same, in a session", send: inSession(http.MethodPost, call(5, "nonsense", "")), status: 400, says: "there is no such method here: JSON RPC not handled: \"nonsense\" unsupported", id: "5"},
	{request: "A call without an id, in a session", send: inSession(http.MethodPost, `{"jsonrpc":"2.0","method":"tools/list","params":{}}`), status: 400, says: "invalid request: missing id for \"tools/list\""},
	{request: "A call without parameters that it needs, in a session", send: inSession(http.MethodPost, `{"jsonrpc":"2.0","id":5,"method":"tools/call"}`), status: 400, says: "invalid request: missing required \"params\"", id: "5"},
	{request: "A batch, since 2025-06-18", send: inSession(http.MethodPost, "["+list5+"]"), status: 400, says: "send each message alone: JSON-RPC batching is not supported in 2025-06-18 and later (request version: 2025-11-25)", id: "5"},
	{request: "The same, since 2026-07-28", send: single("[" + list + "]"), status: 400, says: "send each message alone: JSON-RPC batching is not supported in 2025-06-18 and later (request version: 2026-07-28)", id: "5"},
	{request: "An empty batch", send: inSession(http.MethodPost, "[]", versionHeader, "2025-03-26"), status: 400, says: "the body is an empty batch: send a message"},
	{request: "`initialize` in a batch", send: post("[" + hello + "," + list5 + "]"), status: 400, says: "initialize can't be in a batch: send it alone"},
	{request: "`initialize` in a session", send: inSession(http.MethodPost, hello), status: 400, says: "initialize begins a session: send it without the header Mcp-Session-Id", id: "1"},
	{request: "No session, before 2026-07-28", send: post(list5), status: 400, says: "send initialize first, and the Mcp-Session-Id that it gives in each later request; or MCP-Protocol-Version: 2026-07-28, which needs no session", id: "5"},
	{request: "An unknown session", send: inSession(http.MethodPost, list5, sessionHeader, "nonsense"), status: 404, says: "there is no session \"nonsense\" of yours: it has ended, or it never was; send initialize to begin one", id: "5"},
	{request: "Another client's session", send: inSession(http.MethodPost, list5, sessionHeader, "{other}"), status: 404, says: "there is no session \"{other}\" of yours: it has ended, or it never was; send initialize to begin one", id: "5"},
	{request: "An unknown version", send: inSession(http.MethodPost, list5, versionHeader, "2024-01-01"), status: 400, says: "name another version in MCP-Protocol-Version: Unsupported protocol version (supported versions: 2026-07-28,2025-11-25,2025-06-18,2025-03-26,2024-11-05)", id: "5"},
	{request: "A version that is to come", send: single(call(5, "tools/list", meta("2099-01-01")), versionHeader, "2099-01-01"), status: 400, says: "unsupported protocol version", id: "5"},
	{request: "Another version in the header than in the message", send: single(call(5, "tools/list", meta("2099-01-01"))), status: 400, says: "Mcp-Protocol-Version header \"2026-07-28\" does not match request io.modelcontextprotocol/protocolVersion \"2099-01-01\"", id: "5"},
	{request: "A version in the message only", send: post(list), status: 400, says: "Mcp-Protocol-Version header is required for requests carrying \"io.modelcontextprotocol/protocolVersion\"", id: "5"},
	{request: "A version in the header only", send: single(list5), status: 400, says: "missing or invalid _meta field \"io.modelcontextprotocol/protocolVersion\"", id: "5"},
	{request: "No `Mcp-Method`, since 2026-07-28", send: single(list, "Mcp-Method", ""), status: 400, says: "missing required Mcp-Method header", id: "5"},
	{request: "Another `Mcp-Method` than in the message", send: single(list, "Mcp-Method", "tools/call"), status: 400, says: "header mismatch: Mcp-Method header value 'tools/call' does not match body value 'tools/list'", id: "5"},
	{request: "An id of a call that goes on", held: []string{inSession(http.MethodPost, waits)}, send: inSession(http.MethodPost, waits), status: 400, says: "duplicate in-flight request ID 7", id: "7"},
	{request: "GET without a session", send: send(http.MethodGet, ""), status: 400, says: "MCP is spoken here: POST initialize to this address; GET gives the stream of the session that the header Mcp-Session-Id names"},
	{request: "GET, since 2026-07-28", send: send(http.MethodGet, "", versionHeader, newer), status: 405, says: "in 2026-07-28 there is no stream to GET: POST subscriptions/listen"},
	{request: "GET of another client's session", send: inSession(http.MethodGet, "", sessionHeader, "{other}"), status: 404, says: "there is no session \"{other}\" of yours: it has ended, or it never was; send initialize to begin one"},
	{request: "GET that accepts no stream", send: inSession(http.MethodGet, "", "Accept", "application/json"), status: 406, says: "GET gives a stream: send the header Accept: text/event-stream"},
	{request: "GET twice", held: []string{inSession(http.MethodGet, "")}, send: inSession(http.MethodGet, ""), status: 409, says: "another connection has this stream: close that one first"},
	{request: "`Last-Event-ID` of a stream that never was, or is another session's", send: inSession(http.MethodGet, "", "Last-Event-ID", "NONE_0"), status: 400, says: "what came after this Last-Event-ID is not kept, or never was: send the request again"},
	{request: "A nonsensical `Last-Event-ID`", send: inSession(http.MethodGet, "", "Last-Event-ID", "nonsense"), status: 400, says: "Last-Event-ID is none that this server gave: send the id of the last event that you got"},
	{request: "`Last-Event-ID` where answers are no streams", send: inSession(http.MethodGet, "", "Last-Event-ID", "NONE_0", sessionHeader, "{json}"), status: 400, says: "this session has no streams, for its client wanted none: send GET without Last-Event-ID"},
	{request: "POST with `Last-Event-ID`", send: inSession(http.MethodPost, list5, "Last-Event-ID", "NONE_0"), status: 400, says: "Last-Event-ID is for GET: send the message without it", id: "5"},
	{request: "DELETE without a session", send: send(http.MethodDelete, ""), status: 400, says: "DELETE ends a session: name it in the header Mcp-Session-Id"},
	{request: "DELETE of another client's session", send: inSession(http.MethodDelete, "", sessionHeader, "{other}"), status: 404, says: "there is no session \"{other}\" of yours: it has ended, or it never was; send initialize to begin one"},
	{request: "One request more than 100 in a minute", before: 100, timed: true, send: single(list, "Authorization", "Bearer a"), status: 429, says: "you sent more than 100 requests in 1m0s: try again in 600ms", header: "Retry-After: 1"},
	{request: "A batch of more messages than that", timed: true, send: post("[" + strings.Repeat(list5+",", 101) + list5 + "]"), status: 413, says: "a batch counts as its messages, and you may send 100 in 1m0s: send smaller ones"},
	{request: "More than 64 MiB of requests that wait for their answers", held: []string{coming, coming, coming, coming, coming, coming}, send: coming, status: 429, says: "64 MiB of your requests wait for their answers, which is all that one client may have: try again in 2s", header: "Retry-After: 2"},
	{request: "The connection ends within the body", send: single(list)[:len(single(list))-1], ended: true, status: 400, says: "the body ended early: send it again"},
	{request: "A header that takes longer than 10 s", send: strings.TrimSuffix(single(""), "\r\n\r\n"), timed: true},
	{request: "A body that takes longer than 30 s", send: single(list)[:len(single(list))-1], timed: true, status: 408, says: "the body did not come within 30s: send it again"},
	{request: "The same, without a token", send: single(list, "Authorization", "")[:len(single(list, "Authorization", ""))-1], timed: true, status: 401, says: "send the token that you were given, in a header: Authorization: Bearer TOKEN", header: "WWW-Authenticate: Bearer realm=\"rillbox\""},
	{request: "Two lengths", send: single(list, "+Content-Length", "1"), status: 400, says: "400 Bad Request"},
	{request: "Unknown chunks", send: single(list, "Transfer-Encoding", "xchunked"), status: 501, says: "Unsupported transfer encoding"},
	{request: "Chunks twice", send: single(list, "Transfer-Encoding", "chunked", "+Transfer-Encoding", "chunked"), status: 501, says: "Unsupported transfer encoding"},
	{request: "Chunks that are none", send: single("\r\n"+list, "Content-Length", "", "Transfer-Encoding", "chunked"), status: 400, says: "the body ended early: send it again"},
	{request: "A space before a header's colon", send: single(list, "Transfer-Encoding ", "chunked"), status: 400, says: "400 Bad Request: invalid header name"},
	{request: "No HTTP", send: list + "\r\n\r\n", status: 400, says: "400 Bad Request"},
}

// TestWrongRequests: each gets what docs/http.md says, and the server goes on.
func TestWrongRequests(t *testing.T) {
	tokens := identified{"a": true, "b": true}
	h := open(t, Options{Tokens: tokens})
	dial := func(t *testing.T) net.Conn {
		c, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	_, _, begun := exchange(t, dial(t), post(hello, "Accept", "application/json"), false)
	names := []string{
		"{session}", h.client(t, older, "a", nil).ID(),
		"{other}", h.client(t, older, "b", nil).ID(),
		"{json}", begun.Get(sessionHeader),
	}
	for _, row := range wrongs {
		t.Run(row.request, func(t *testing.T) {
			if row.timed {
				synctest.Test(t, func(t *testing.T) {
					pipes := make(pipeListener)
					openOn(t, Options{Tokens: tokens, Requests: 100, Window: time.Minute}, pipes)
					row.check(t, func(*testing.T) net.Conn { return pipes.dial() }, nil)
				})
			} else {
				row.check(t, dial, names)
			}
		})
	}
}

// TestWhoTakesNothingIsCutOff: who does not read the answer, and who keeps a connection and
// sends nothing more.
func TestWhoTakesNothingIsCutOff(t *testing.T) {
	for name, row := range map[string]struct {
		reads bool
		after time.Duration
	}{"a slow reader": {false, writeTime}, "an idle connection": {true, idleTime}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pipes := make(pipeListener)
				openOn(t, Options{Tokens: identified{"a": true}}, pipes)
				c := pipes.dial()
				defer c.Close()
				if _, err := io.WriteString(c, single(list, "Authorization", "Bearer a")); err != nil {
					t.Fatal(err)
				}
				r := bufio.NewReader(c)
				if row.reads {
					answer, err := http.ReadResponse(r, nil)
					if err == nil {
						_, err = io.ReadAll(answer.Body)
					}
					if err != nil || answer.StatusCode != http.StatusOK {
						t.Fatal(answer, err)
					}
				}
				time.Sleep(row.after + time.Second)
				began := time.Now()
				if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 || time.Since(began) > 0 {
					t.Errorf("after %v more: %q %v", time.Since(began), rest, err)
				}
			})
		})
	}
}

// TestRightRequests: what looks like a wrong one is served.
func TestRightRequests(t *testing.T) {
	h := open(t, Options{Tokens: identified{"a": true}, Hosts: []string{"box.example"}, Origins: []string{"https://chat.example"}})
	c := h.client(t, older, "a", nil)
	for name, row := range map[string]struct{ send, header string }{
		"a page of this server":             {single(list, "Origin", "http://localhost"), "Access-Control-Allow-Origin: "},
		"a page of the list":                {single(list, "Origin", "https://chat.example"), "Access-Control-Allow-Origin: https://chat.example"},
		"a link to this server":             {single(list, "Sec-Fetch-Site", "none"), ""},
		"an address":                        {single(list, "Host", "127.0.0.1:8848"), ""},
		"an address of the sixth version":   {single(list, "Host", "[::1]:8848"), ""},
		"localhost with a port":             {single(list, "Host", "LocalHost:8848"), ""},
		"localhost as DNS writes it":        {single(list, "Host", "localhost.:8848"), ""},
		"a host of the list":                {single(list, "Host", "Box.Example."), ""},
		"a charset":                         {single(list, "Content-Type", "Application/JSON; charset=UTF-8"), ""},
		"no Accept":                         {single(list, "Accept", ""), "Content-Type: application/json"},
		"anything is accepted":              {single(list, "Accept", "*/*"), "Content-Type: application/json"},
		"JSON is accepted":                  {single(list, "Accept", "application/json;q=0.9"), "Content-Type: application/json"},
		"a stream is accepted":              {single(list, "Accept", "text/event-stream"), "Content-Type: text/event-stream"},
		"chunks":                            {single(fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(list), list), "Content-Length", "", "Transfer-Encoding", "chunked"), ""},
		"the largest body":                  {single(large), ""},
		"a batch of 2025-03-26":             {inSession(http.MethodPost, "["+list5+"]", versionHeader, "2025-03-26", sessionHeader, c.ID()), ""},
		"a session's header in a later era": {single(list, sessionHeader, "nonsense"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			status, body, header := exchange(t, c, row.send, false)
			if status != http.StatusOK || !strings.Contains(body, `"run_code"`) {
				t.Errorf("%d %s", status, body)
			}
			if name, value, _ := strings.Cut(row.header, ": "); header.Get(name) != value {
				t.Errorf("%s is %q, not %q", name, header.Get(name), value)
			}
		})
	}
}

func (row *wrong) check(t *testing.T, dial func(*testing.T) net.Conn, names []string) {
	var codes []string
	for i := 0; i < len(names); i += 2 {
		codes = append(codes, names[i+1], names[i])
	}
	put := strings.NewReplacer(names...)
	for _, text := range row.held {
		c := dial(t)
		defer c.Close()
		if _, err := io.WriteString(c, put.Replace(text)); err != nil {
			t.Fatal(err)
		}
		if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
			t.Fatal(err)
		}
	}
	for range row.before {
		if status, body, _ := exchange(t, dial(t), put.Replace(row.send), false); status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
	}
	status, body, header := exchange(t, dial(t), put.Replace(row.send), row.ended)
	says, id := body, ""
	if header.Get("Content-Type") == "application/json" && body != "" { // an answer to HEAD has none
		var answer struct {
			Version string `json:"jsonrpc"`
			ID      json.RawMessage
			Error   struct {
				Code    int
				Message string
			}
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.Version != "2.0" || answer.Error.Code == 0 {
			t.Errorf("%v: %s", err, body)
		}
		says, id = answer.Error.Message, strings.TrimPrefix(string(answer.ID), "null")
	}
	says = strings.NewReplacer(codes...).Replace(says)
	if status != row.status || says != row.says || id != row.id {
		t.Errorf("got\n%d, says: %q, id: %q\nwant\n%d, says: %q, id: %q", status, says, id, row.status, row.says, row.id)
	}
	if name, value, _ := strings.Cut(row.header, ": "); header.Get(name) != value {
		t.Errorf("%s is %q, not %q", name, header.Get(name), value)
	}
	if status, body, _ := exchange(t, dial(t), single(list, "Authorization", "Bearer b"), false); status != http.StatusOK {
		t.Errorf("and then: %d %s", status, body)
	}
}

// exchange sends a request, and gives its answer; status 0 means that the connection was
// closed without one.
func exchange(t *testing.T, c net.Conn, text string, ended bool) (status int, body string, header http.Header) {
	t.Helper()
	defer c.Close()
	go func() {
		_, _ = io.WriteString(c, text) // the answer tells what came
		if ended {
			_ = c.(*net.TCPConn).CloseWrite()
		}
	}()
	method, _, _ := strings.Cut(text, " ")
	answer, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, "", nil
	}
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(all), answer.Header
}

// pipeListener gives out connections whose time is the test's.
type pipeListener chan net.Conn

func (l pipeListener) dial() net.Conn {
	client, server := net.Pipe()
	l <- server
	return client
}

func (l pipeListener) Accept() (net.Conn, error) {
	if c, ok := <-l; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (l pipeListener) Close() error {
	close(l)
	return nil
}

func (pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// TestTheDocumentationHasTheWrongRequests: run with -update to write them.
func TestTheDocumentationHasTheWrongRequests(t *testing.T) {
	const file, heading = "../../docs/http.md", "## What a wrong request gets\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), "| Request | Status | Answer |\n")
	if !found || !strings.Contains(before, heading) {
		t.Fatalf("%s has no table under %q", file, heading)
	}
	after := rest
	for strings.HasPrefix(after, "|") {
		_, after, _ = strings.Cut(after, "\n")
	}
	table := "| --- | --- | --- |\n"
	for _, row := range wrongs {
		status, says := fmt.Sprint(row.status), row.says
		if row.status == 0 {
			status, says = "–", "The connection is closed"
		}
		says = cmp.Or(says, "–")
		table += fmt.Sprintf("| %s | %s | %s |\n", row.request, status, says)
	}
	if table == rest[:len(rest)-len(after)] {
		return
	}
	if !*update {
		t.Fatalf("the table of %s is not that of the test: run with -update", file)
	}
	if err := os.WriteFile(file, []byte(before+"| Request | Status | Answer |\n"+table+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestWhoClosesItsSideHasGone: a call of one message ends with it.
func TestWhoClosesItsSideHasGone(t *testing.T) {
	h := open(t, Options{})
	c, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	meta := strings.Replace(meta(newer), "{", `{"progressToken":1,`, 1)
	call := call(7, "tools/call", `"name":"run_code","arguments":{"language":"js","code":"wait"},`+meta)
	if _, err := io.WriteString(c, single(call, "Mcp-Method", "tools/call", "Mcp-Name", "run_code")); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(c); !strings.Contains(lines.Text(), "begun"); {
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	<-h.ended
}

// TestNothingIsSmuggled: what is after a body in chunks is not taken for a request, for
// its length may have said that it is the body's.
func TestNothingIsSmuggled(t *testing.T) {
	h := open(t, Options{})
	c, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	chunks := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(list), list)
	if _, err := io.WriteString(c, single(chunks+single(list), "Transfer-Encoding", "chunked")); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(c)
	if n := strings.Count(string(all), "HTTP/1.1 200 OK"); err != nil || n != 1 {
		t.Errorf("%d answers: %v\n%s", n, err, all)
	}
}
