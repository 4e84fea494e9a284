//go:build !windows

package server

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/server/stdio"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
	"rillbox/workspace"
)

// ownWorkspaces gives each client a workspace of its own when it asks for it by
// no handle, and keeps it; here files are under test, not sessions.
type ownWorkspaces struct {
	t       *testing.T
	options workspace.Options

	mu  sync.Mutex
	own map[string]map[string]*workspace.Dir // client → handle → directory
	dir map[string]string                    // handle → where it is
}

func (w *ownWorkspaces) EnsureSession(client, session string) (bool, error) { return false, nil }

func (w *ownWorkspaces) Workspace(_ context.Context, client, session string) (*workspace.Dir, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if dir, ok := w.own[client][session]; ok {
		return dir, nil
	}
	if session == supervisor.DefaultHandle {
		return w.open(client, session), nil
	}
	return nil, errors.New("there is no such session of yours")
}

func (w *ownWorkspaces) open(client, handle string) *workspace.Dir {
	path := w.t.TempDir()
	dir, err := workspace.Open(path, w.options)
	if err != nil {
		w.t.Error(err)
	}
	w.t.Cleanup(func() { dir.Close() })
	if w.own[client] == nil {
		w.own[client] = map[string]*workspace.Dir{}
	}
	w.own[client][handle], w.dir[handle] = dir, path
	return dir
}

func (w *ownWorkspaces) Workspaces(client string) map[string]*workspace.Dir {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.own[client])
}

// guestWrites writes a file as a guest in the session would.
func (w *ownWorkspaces) guestWrites(session, name string, data []byte) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	file := filepath.Join(w.dir[session], name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, data, 0o644)); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chtimes(file, time.Time{}, time.Unix(1_700_000_000, 0)); err != nil {
		w.t.Fatal(err)
	}
}

func newFileServer(t *testing.T, o workspace.Options) (*Server, *ownWorkspaces) {
	w := &ownWorkspaces{t: t, options: o, own: map[string]map[string]*workspace.Dir{}, dir: map[string]string{}}
	s := newServer(says(job.Result{}), nil)
	s.workspaces = w
	return s, w
}

// openFiles connects a client and opens its workspace.
func openFiles(t *testing.T, o workspace.Options) (*mcp.ClientSession, *ownWorkspaces) {
	t.Helper()
	s, w := newFileServer(t, o)
	session := dial(t, s, nil)
	call(t, session, "list_files", `{}`)
	return session, w
}

const first = supervisor.DefaultHandle

// says checks an answer: its text begins with want, or, of an error, holds it.
func answers(t *testing.T, session *mcp.ClientSession, tool, args, want string) *mcp.CallToolResult {
	t.Helper()
	res := call(t, session, tool, args)
	got := res.Content[0].(*mcp.TextContent).Text
	if refusal, ok := strings.CutPrefix(want, "error: "); ok {
		if !res.IsError || !strings.Contains(got, refusal) {
			t.Errorf("%s %s gave %q, want an error that says %q", tool, args, got, refusal)
		}
		return res
	}
	if res.IsError || got != want {
		t.Errorf("%s %s gave\n%s\nwant\n%s", tool, args, got, want)
	}
	if !res.IsError {
		checkOutput(t, session, tool, res)
	}
	return res
}

// TestToolsCost: what every conversation pays before a word is said.
func TestToolsCost(t *testing.T) {
	s, _ := newFileServer(t, workspace.Options{})
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- stdio.Serve(context.Background(), s, in, out, s.o.Log); out.Close() }()
	w := newWire(t, toServer, fromServer)
	w.open()
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	answer := w.read()
	n := len(answer)
	t.Log("tools/list has ", n, " bytes")
	if n > 17_000 || strings.Count(answer, `"inputSchema"`) != 12 {
		t.Errorf("tools/list has %d bytes for %d tools: the most is 17,000 for 12", n, strings.Count(answer, `"inputSchema"`))
	}
	toServer.Close()
	if err := awaitValue(t, ended, "the end of serve"); err != nil {
		t.Error(err)
	}
}

func TestReadFile(t *testing.T) {
	session, w := openFiles(t, workspace.Options{})
	long := strings.Repeat("äöü\n", 20_000)
	w.guestWrites(first, "data/in.csv", []byte("a,b\n1,2\n"))
	w.guestWrites(first, "long.txt", []byte(long))
	w.guestWrites(first, "odd\nname.txt", []byte("x"))
	w.guestWrites(first, "empty", nil)
	w.guestWrites(first, "latin1.txt", []byte("gr\xfcn"))
	w.guestWrites(first, "bytes.bin", bytes.Repeat([]byte{0, 1, 2, 3}, 4<<10))
	for _, row := range []struct{ args, want string }{
		{`{"path":"data/in.csv"}`, "data/in.csv: text/csv, 8 bytes\n\na,b\n1,2\n"},
		{`{"path":"/workspace/data/in.csv","offset":4}`, "data/in.csv: text/csv, 8 bytes; from byte 4 on, to the end\n\n1,2\n"},
		{`{"path":"data/in.csv","offset":4,"limit":1}`, "data/in.csv: text/csv, 8 bytes; bytes 4 to 4 of 8, 3 are left: go on with offset 5\n\n1"},
		{`{"path":"data/in.csv","offset":8}`, "data/in.csv: text/csv, 8 bytes; from byte 8 on, to the end\n\n"},
		{`{"path":"data/in.csv","encoding":"base64"}`, "data/in.csv: text/csv, 8 bytes; as base64\n\nYSxiCjEsMgo="},
		{`{"path":"empty"}`, "empty: text/plain, 0 bytes\n\n"},
		{`{"path":"odd\nname.txt"}`, "\"odd\\nname.txt\": text/plain, 1 byte\n\nx"},
		{`{"path":"latin1.txt"}`, "latin1.txt: text/plain, 4 bytes; as base64\n\nZ3L8bg=="},
		{`{"path":"latin1.txt","encoding":"text"}`, "latin1.txt: text/plain, 4 bytes\nnote: 1 bytes are not UTF-8; each is shown as \uFFFD.\n\ngr\uFFFDn"},
		{`{"path":"bytes.bin","limit":3}`, "bytes.bin: application/octet-stream, 16 KiB; bytes 0 to 2 of 16384, 16381 are left: go on with offset 3; as base64\n\nAAEC"},
		{`{"path":"data/in.csv","offset":9}`, `error: offset 9 is beyond the end of "data/in.csv", which has 8 bytes`},
		{`{"path":"data/in.csv","offset":-1}`, "error: offset is -1"},
		{`{"path":"data/in.csv","limit":0}`, "error: limit is 0: use 1 to 1048576"},
		{`{"path":"data/in.csv","limit":1048577}`, "error: use 1 to 1048576"},
		{`{"path":"data/in.csv","limit":1.5}`, `error: limit: "1.5" is out of range`},
		{`{"path":"data/in.csv","encoding":"utf-16"}`, `error: encoding "utf-16" is not known`},
		{`{"path":"data"}`, `error: "data" is a folder`},
		{`{"path":"nothing"}`, `error: "nothing" is not in the workspace: list_files shows what is`},
		{`{"path":"../secret"}`, `error: holds ".."`},
		{`{"path":"/etc/passwd"}`, "error: outside the workspace"},
		{`{"path":""}`, "error: the path is empty"},
		{`{}`, "error: read_file needs path"},
		{`{"path":"x","session_id":"handle-7"}`, "error: there is no such session of yours"},
	} {
		answers(t, session, "read_file", row.args, row.want)
	}

	// What is long is read in parts that are whole characters, and add up.
	var got strings.Builder
	for offset, parts := int64(0), 0; ; parts++ {
		res := call(t, session, "read_file", fmt.Sprintf(`{"path":"long.txt","offset":%d}`, offset))
		out := structured[readOutput](t, res)
		if len(out.Notes) > 0 || out.SizeBytes != int64(len(long)) {
			t.Fatalf("from %d: %+v", offset, out)
		}
		if !strings.HasSuffix(text(t, res), "\n\n"+out.Content) {
			t.Errorf("from %d: the text has other content", offset)
		}
		got.WriteString(out.Content)
		if out.NextOffset == nil {
			if parts != 2 {
				t.Errorf("%d parts", parts+1)
			}
			break
		}
		offset = *out.NextOffset
	}
	if got.String() != long {
		t.Error("the parts do not add up")
	}
	out := structured[readOutput](t, call(t, session, "read_file", `{"path":"bytes.bin"}`))
	if data, err := base64.StdEncoding.DecodeString(out.Content); err != nil || len(data) != readBase64 || *out.NextOffset != readBase64 {
		t.Errorf("%d bytes of base64, then %d, %v", len(data), *out.NextOffset, err)
	}
}

func TestReadFileShowsPictures(t *testing.T) {
	session, w := openFiles(t, workspace.Options{})
	small, large := pngOf(t, noisy(30, 20)), jpegOf(t, blank(2500, 1250))
	w.guestWrites(first, "small.png", small)
	w.guestWrites(first, "large", large)
	w.guestWrites(first, "bomb.png", pngThatClaims(50_000, 50_000))
	w.guestWrites(first, "icon.ico", append([]byte{0, 0, 1, 0}, make([]byte, 20)...))
	w.guestWrites(first, "drawing.svg", []byte("<svg/>"))

	res := answers(t, session, "read_file", `{"path":"small.png"}`, fmt.Sprintf("small.png: image/png, %s, an image of 30 × 20 pixels\n", size(int64(len(small)))))
	if len(res.Content) != 2 || !bytes.Equal(res.Content[1].(*mcp.ImageContent).Data, small) || res.Content[1].(*mcp.ImageContent).MIMEType != "image/png" {
		t.Errorf("got %d parts", len(res.Content))
	}
	out := structured[readOutput](t, res)
	if out.Encoding != "image" || out.Content != "" || out.Width != 30 || out.Height != 20 || out.URI != "rillbox://sessions/default/files/small.png" {
		t.Errorf("got %+v", out)
	}
	res = call(t, session, "read_file", `{"path":"large"}`)
	if out := structured[readOutput](t, res); len(res.Content) != 2 || out.Width != 2000 || out.Height != 1000 ||
		!strings.Contains(fmt.Sprint(out.Notes), "scaled down from 2500 × 1250 pixels") {
		t.Errorf("got %+v", out)
	}
	for path, want := range map[string]string{
		"bomb.png": "It is not shown as a picture: it is too large to be shown",
		"icon.ico": "It is not shown as a picture: it is not a PNG",
	} {
		out := structured[readOutput](t, call(t, session, "read_file", fmt.Sprintf(`{"path":%q}`, path)))
		if out.Encoding != "base64" || out.Content == "" || !strings.Contains(fmt.Sprint(out.Notes), want) {
			t.Errorf("%s: got %+v", path, out)
		}
	}
	answers(t, session, "read_file", `{"path":"drawing.svg"}`, "drawing.svg: image/svg+xml, 6 bytes\n\n<svg/>")
	out = structured[readOutput](t, call(t, session, "read_file", `{"path":"small.png","limit":8}`))
	if out.Encoding != "base64" || out.Content != "iVBORw0KGgo=" {
		t.Errorf("a part of a picture: %+v", out)
	}
}

func TestWriteFile(t *testing.T) {
	session, w := openFiles(t, workspace.Options{Bytes: 100, Files: 10})
	for _, row := range []struct{ args, want string }{
		{`{"path":"a/b.txt","content":"grün"}`, "wrote a/b.txt (5 bytes)"},
		{`{"path":"/workspace/a/b.txt","text":""}`, "replaced a/b.txt (0 bytes)"},
		{`{"path":"c","base64":"AP8="}`, "wrote c (2 bytes)"},
		{`{"path":"c","base64":"AP8"}`, "replaced c (2 bytes)"},
		{`{"path":"c","base64":"AP\r\n8=\n"}`, "replaced c (2 bytes)"},
		{`{"path":"c","base64":""}`, "replaced c (0 bytes)"},
		{`{"path":"c","base64":"data:image/png;base64,AP8="}`, "error: the base64 of write_file is not valid"},
		{`{"path":"c"}`, "error: write_file needs content, or base64"},
		{`{"path":"c","content":null}`, "error: write_file needs content"},
		{`{"path":"c","content":"x","base64":"AP8="}`, "error: both content and base64"},
		{`{"path":"c","content":"x","text":"x"}`, "error: both content and text"},
		{`{"path":"c","content":7}`, "error: content must be a string, got a number"},
		{`{"path":"a","text":"x"}`, `error: "a" is a folder`},
		{`{"path":"../c","text":"x"}`, `error: holds ".."`},
		{`{"path":"c","text":"<101xx>"}`, "error: 101 bytes: the workspace holds 100 at most"},
	} {
		args := strings.Replace(row.args, "<101xx>", strings.Repeat("x", 101), 1)
		answers(t, session, "write_file", args, row.want)
	}
	out := structured[writeOutput](t, call(t, session, "write_file", `{"path":"a/x y.txt","text":"hello"}`))
	if want := (writeOutput{"a/x y.txt", "rillbox://sessions/default/files/a/x%20y.txt", 5, true}); out != want {
		t.Errorf("got %+v, want %+v", out, want)
	}
	if data, err := os.ReadFile(filepath.Join(w.dir[first], "a/x y.txt")); err != nil || string(data) != "hello" {
		t.Errorf("the file has %q, %v", data, err)
	}
}

func TestListAndDeleteFiles(t *testing.T) {
	session, w := openFiles(t, workspace.Options{Bytes: 1 << 20, Files: 100})
	answers(t, session, "list_files", `{}`, "nothing found\n\n0 found; the workspace has 0 files and folders of 100, 0 bytes of 1 MiB\n")
	w.guestWrites(first, "data/in.csv", make([]byte, 2048))
	w.guestWrites(first, "odd\nx  12 bytes", nil)
	if err := os.Symlink("/etc/passwd", filepath.Join(w.dir[first], "link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(w.dir[first], "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	const end = "the workspace has 5 files and folders of 100, 2 KiB of 1 MiB\n"
	answers(t, session, "list_files", `{}`, "data/\ndata/in.csv  2 KiB  2023-11-14T22:13:20Z  text/csv\nfifo  (other)\nlink  (link)\n"+
		"\"odd\\nx  12 bytes\"  0 bytes  2023-11-14T22:13:20Z  \n\n5 found; "+end)
	answers(t, session, "list_files", `{"glob":"**/*.csv"}`, "data/in.csv  2 KiB  2023-11-14T22:13:20Z  text/csv\n\n1 found; "+end)
	answers(t, session, "list_files", `{"glob":"*.json"}`, "nothing found\n\n0 found; "+end)
	answers(t, session, "list_files", `{"glob":"nothing"}`, "error: is not in the workspace")
	answers(t, session, "list_files", `{"glob":"*.{a,b}"}`, "error: braces")
	answers(t, session, "list_files", `{"glob":"../*"}`, `error: holds ".."`)

	answers(t, session, "delete_file", `{"path":"data"}`, "error: is not empty")
	answers(t, session, "delete_file", `{"path":"data","recursive":"yes"}`, "error: recursive must be a boolean, got a string")
	answers(t, session, "delete_file", `{"path":"link"}`, "deleted link")
	answers(t, session, "delete_file", `{"path":"data","recursive":true}`, "deleted data")
	answers(t, session, "delete_file", `{"path":"data","recursive":true}`, "error: is not in the workspace: list_files shows what is")
	answers(t, session, "delete_file", `{"path":".","recursive":true}`, "error: the workspace itself")
	if out := structured[listOutput](t, call(t, session, "list_files", `{}`)); out.Matched != 2 || out.MaxFiles != 100 || out.Files[0].Kind != "other" {
		t.Errorf("left is %+v", out)
	}
	for i := range maxListed + 1 {
		w.guestWrites(first, fmt.Sprintf("many/%d", i), nil)
	}
	out := structured[listOutput](t, call(t, session, "list_files", `{"glob":"many"}`))
	if len(out.Files) != maxListed || out.Matched != maxListed+1 || !strings.Contains(fmt.Sprint(out.Notes), "1 more are not listed") {
		t.Errorf("%d of %d, %v", len(out.Files), out.Matched, out.Notes)
	}
}

func TestReadOnlyWorkspace(t *testing.T) {
	session, w := openFiles(t, workspace.Options{ReadOnly: true})
	w.guestWrites(first, "file", []byte("x"))
	answers(t, session, "write_file", `{"path":"file","text":"y"}`, "error: read-only")
	answers(t, session, "delete_file", `{"path":"file"}`, "error: read-only")
	answers(t, session, "read_file", `{"path":"file"}`, "file: text/plain, 1 byte\n\nx")
	if out := structured[listOutput](t, call(t, session, "list_files", `{}`)); !out.ReadOnly || out.MaxBytes != 0 {
		t.Errorf("got %+v", out)
	}
}

func TestFilesOfARun(t *testing.T) {
	decode := func(raw string) (map[string][]byte, error) {
		var files fileArgs
		if err := json.Unmarshal([]byte(raw), &files); err != nil {
			t.Fatal(err)
		}
		return files.bytes()
	}
	files, err := decode(`{"a.csv":"1,2","b":{"base64":"AP8="},"c":{"text":"x"},"d":""}`)
	if err != nil || len(files) != 4 || string(files["a.csv"]) != "1,2" || string(files["b"]) != "\x00\xff" || string(files["c"]) != "x" || files["d"] == nil {
		t.Errorf("got %q, %v", files, err)
	}
	for raw, want := range map[string]string{
		`{"a":7}`:                         `files["a"] must be the text as a string, or the bytes as {"base64": "…"}, got a number`,
		`{"a":["x"]}`:                     "got a list",
		`{"a":null}`:                      "got null",
		`{"a":{}}`:                        `files["a"] needs the content`,
		`{"a":{"base64":"%"}}`:            `the base64 of files["a"] is not valid`,
		`{"a":{"base64":7}}`:              "base64 must be a string, got a number",
		`{"a":{"path":"x"}}`:              `files["a"] has no argument "path": it takes text, base64`,
		`{"a":{"text":"","base64":"AA"}}`: "both text and base64",
	} {
		if _, err := decode(raw); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gave %v, want %q", raw, err, want)
		}
	}
	many := fileArgs{}
	for i := range maxItems + 1 {
		many[fmt.Sprint(i)] = json.RawMessage(`""`)
	}
	if _, err := many.bytes(); err == nil || !strings.Contains(err.Error(), "files has 257 files: the most is 256") {
		t.Errorf("too many gave %v", err)
	}
}

// What manifests among the files of a call say holds for its program; those of a session
// are more than one call's.
func TestManifestsAmongTheFilesOfACall(t *testing.T) {
	var had []job.Manifest
	session := dial(t, newServer(scripted{run: func(_ context.Context, p job.Program, _ func(job.Event)) (job.Result, error) {
		had = append(had, p.Manifest)
		return job.Result{Status: job.Completed}, nil
	}}, nil), nil)
	args := `{"language":"typescript","code":"1","files":{"package.json":"{\"dependencies\":{\"ms\":\"2.0.0\"},\"resolutions\":{}}","deno.json":"{\"imports\":{\"@/\":\"./src/\"}}"}}`
	out := structured[runOutput](t, call(t, session, "run_code", args))
	if len(had) != 1 || had[0].Imports["ms"] != "npm:ms@2.0.0" || had[0].Imports["@/"] != "./src/" {
		t.Errorf("the program has %+v", had)
	}
	if !slices.Contains(out.Notes, `package.json: "resolutions" is not honoured`) {
		t.Errorf("notes: %q", out.Notes)
	}
	answers(t, session, "run_code", `{"language":"typescript","code":"1","files":{"package.json":"{"}}`, "error: package.json is not JSON: line 1")
}
