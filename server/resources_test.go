//go:build !windows

package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"

	"rillbox/server/stdio"
	"rillbox/supervisor/job"
	"rillbox/workspace"
)

func TestResources(t *testing.T) {
	for _, era := range []string{handshakeEra, sessionlessEra} {
		t.Run(era, func(t *testing.T) {
			s, w := newFileServer(t, workspace.Options{})
			session, other := dialEra(t, s, nil, era), dialEra(t, s, nil, era)
			ctx := context.Background()
			call(t, session, "list_files", `{}`)
			w.guestWrites(first, "data/a b.csv", []byte("1,2"))
			w.guestWrites(first, "50%?#é\n", []byte("x"))
			w.guestWrites(first, "empty.txt", nil)
			w.guestWrites(first, "bytes", []byte{0, 255})
			w.guestWrites(first, "large", make([]byte, maxResource+1))

			templates, err := session.ListResourceTemplates(ctx, nil)
			if err != nil || len(templates.ResourceTemplates) != 2 || templates.ResourceTemplates[0].URITemplate != outputsTemplate || templates.ResourceTemplates[1].URITemplate != filesTemplate {
				t.Fatalf("templates: %+v, %v", templates, err)
			}
			template, err := uritemplate.New(filesTemplate)
			if err != nil {
				t.Fatal(err)
			}
			list, err := session.ListResources(ctx, nil)
			if err != nil || list.CacheScope != "private" || list.NextCursor != "" {
				t.Fatalf("got %+v, %v", list, err)
			}
			var uris []string
			for _, r := range list.Resources {
				uris = append(uris, r.URI)
				if !template.Regexp().MatchString(r.URI) || r.Annotations.LastModified != "2023-11-14T22:13:20Z" {
					t.Errorf("%s does not match the template, or has no time: %+v", r.URI, r.Annotations)
				}
			}
			const files = "rillbox://sessions/default/files/"
			want := files + "50%25%3F%23%C3%A9%0A " + files + "bytes " + files + "data/a%20b.csv " + files + "empty.txt " + files + "large"
			if got := strings.Join(uris, " "); got != want {
				t.Errorf("listed are %s, want %s", got, want)
			}
			if r := list.Resources[2]; r.Name != "data/a b.csv" || r.Title != "a b.csv" || r.Size != 3 || r.MIMEType != "text/csv" {
				t.Errorf("got %+v", r)
			}
			for uri, want := range map[string]mcp.ResourceContents{
				uris[0]:                {Text: "x", MIMEType: "text/plain"},
				uris[1]:                {Blob: []byte{0, 255}, MIMEType: "application/octet-stream"},
				uris[2]:                {Text: "1,2", MIMEType: "text/csv"},
				uris[3]:                {Blob: []byte{}, MIMEType: "text/plain"},
				files + "data/a b.csv": {Text: "1,2", MIMEType: "text/csv"}, // not escaped, as it should be
			} {
				res, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
				if err != nil || len(res.Contents) != 1 || res.CacheScope != "private" {
					t.Errorf("%s: %+v, %v", uri, res, err)
					continue
				}
				if c := res.Contents[0]; c.URI != strings.ReplaceAll(uri, " ", "%20") || c.Text != want.Text || !bytes.Equal(c.Blob, want.Blob) || c.MIMEType != want.MIMEType {
					t.Errorf("%s: got %+v, want %+v", uri, c, want)
				}
			}
			for uri, want := range map[string]string{
				uris[4]:                           "read_file gives parts of it",
				files + "nothing":                 "is not in the workspace",
				files + "..%2F..%2Fsecret":        `holds \"..\"`,
				files + "%2Fetc%2Fpasswd":         "outside the workspace",
				files + "%00":                     "",
				files + "%ff":                     "",
				files + "data":                    "is a folder",
				files + "\x00 ?":                  "NUL",
				"rillbox://sessions/none/files/x": "there is no such session of yours",
				files:                             "",
				"rillbox://sessions/default":      "",
				"file:///etc/passwd":              "",
				"\u0001\"\n":                      "",
				"":                                "",
			} {
				_, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
				var wire *jsonrpc.Error
				if !errors.As(err, &wire) || !strings.Contains(fmt.Sprintf("%q", err.Error()), want) && !strings.Contains(err.Error(), want) {
					t.Errorf("%q gave %v, want %q", uri, err, want)
				}
			}

			// Another client sees nothing of it, and cannot tell it from nothing.
			if list, err := other.ListResources(ctx, nil); err != nil || len(list.Resources) != 0 {
				t.Errorf("another client's list: %+v, %v", list, err)
			}
			_, foreign := other.ReadResource(ctx, &mcp.ReadResourceParams{URI: uris[2]})
			_, none := other.ReadResource(ctx, &mcp.ReadResourceParams{URI: strings.Replace(uris[2], "a%20b", "never", 1)})
			if foreign == nil || none == nil || strings.NewReplacer("a%20b", "never", "a b", "never").Replace(foreign.Error()) != none.Error() {
				t.Errorf("another's file gave %v, and none gave %v", foreign, none)
			}
			for _, tool := range []string{"read_file", "write_file", "delete_file"} {
				answers(t, other, tool, strings.Replace(`{"path":"data/a b.csv","session_id":"handle-1","text":"x"}`, `,"text":"x"`,
					map[string]string{"write_file": `,"text":"x"`}[tool], 1), "error: there is no such session of yours")
			}
			answers(t, other, "list_files", `{"session_id":"handle-1"}`, "error: there is no such session of yours")
		})
	}
}

func TestResourcesComeInPages(t *testing.T) {
	session, w := openFiles(t, workspace.Options{})
	const files = 2*resourcePage + 1
	for i := range files {
		w.guestWrites(first, fmt.Sprintf("%04d", i), nil)
	}
	seen, pages, cursor := map[string]bool{}, 0, ""
	for {
		list, err := session.ListResources(context.Background(), &mcp.ListResourcesParams{Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for _, r := range list.Resources {
			seen[r.Name] = true
		}
		if pages == 1 { // what is made meanwhile does not shift the pages
			w.guestWrites(first, "0000 begin", nil)
		}
		if cursor = list.NextCursor; cursor == "" {
			break
		}
	}
	if len(seen) != files || pages != 3 {
		t.Errorf("%d files on %d pages", len(seen), pages)
	}
	_, err := session.ListResources(context.Background(), &mcp.ListResourcesParams{Cursor: "§"})
	if err == nil || !strings.Contains(err.Error(), "begin without one") {
		t.Errorf("a wrong cursor gave %v", err)
	}
}

func TestChangedResourcesAreToldToTheirOwnClient(t *testing.T) {
	for _, era := range []string{handshakeEra, sessionlessEra} {
		t.Run(era, func(t *testing.T) {
			s, _ := newFileServer(t, workspace.Options{})
			connect := func() (*mcp.ClientSession, chan struct{}) {
				told := make(chan struct{}, 100)
				return dialEra(t, s, &mcp.ClientOptions{
					ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { told <- struct{}{} },
				}, era), told
			}
			one, toldOne := connect()
			two, toldTwo := connect()
			change := func(session *mcp.ClientSession, told chan struct{}) {
				t.Helper()
				call(t, session, "write_file", `{"path":"x","text":"x"}`)
				await(t, told, "the news of a change")
			}
			change(one, toldOne)
			change(two, toldTwo)
			change(one, toldOne)
			call(t, one, "delete_file", `{"path":"x"}`)
			await(t, toldOne, "the news of a deletion")
			change(two, toldTwo) // whatever else there was to tell has come before
			if len(toldOne) > 0 || len(toldTwo) > 0 {
				t.Errorf("%d and %d too many were told", len(toldOne), len(toldTwo))
			}
		})
	}
}

func TestADeafClientKeepsNobodyFromHearing(t *testing.T) {
	s, _ := newFileServer(t, workspace.Options{})
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- stdio.Serve(context.Background(), s, in, out, s.o.Log) }()
	deaf := newWire(t, toServer, fromServer)
	deaf.open()
	deaf.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write_file","arguments":{"path":"x","text":"x"}}}`)
	told := make(chan struct{}, 100)
	session := dialEra(t, s, &mcp.ClientOptions{
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { told <- struct{}{} },
	}, handshakeEra)
	call(t, session, "write_file", `{"path":"x","text":"x"}`)
	await(t, told, "the news of a change")
	toServer.Close()
	if err := awaitValue(t, ended, "the end of serve"); err != nil {
		t.Errorf("serve ended with %v", err)
	}
}

func TestCompletion(t *testing.T) {
	s, w := newFileServer(t, workspace.Options{})
	session, other := dial(t, s, nil), dial(t, s, nil)
	call(t, session, "list_files", `{}`)
	for _, name := range []string{"data/in.csv", "data/out.csv", "notes"} {
		w.guestWrites(first, name, nil)
	}
	complete := func(session *mcp.ClientSession, argument, value, handle string) string {
		t.Helper()
		res, err := session.Complete(context.Background(), &mcp.CompleteParams{
			Ref:      &mcp.CompleteReference{Type: "ref/resource", URI: filesTemplate},
			Argument: mcp.CompleteParamsArgument{Name: argument, Value: value},
			Context:  &mcp.CompleteContext{Arguments: map[string]string{"session_id": handle}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(res.Completion.Values, " ")
	}
	for _, row := range []struct{ argument, value, handle, want string }{
		{"session_id", "", "", first},
		{"session_id", "x", "", ""},
		{"path", "data/", first, "data/in.csv data/out.csv"},
		{"path", "", first, "data data/in.csv data/out.csv notes"},
		{"path", "", "handle-2", ""},
		{"other", "", first, ""},
	} {
		if got := complete(session, row.argument, row.value, row.handle); got != row.want {
			t.Errorf("%+v gave %q", row, got)
		}
		if got := complete(other, row.argument, row.value, row.handle); got != "" {
			t.Errorf("another client is told %q", got)
		}
	}
}

// linksTo are the links of an answer to files that a session's run created.
func linksTo(session string, files []workspace.File) []mcp.Content {
	r := &runFiles{dir: &workspace.Dir{}, changes: workspace.Changes{Created: files}}
	return newServer(says(job.Result{}), nil).tellFiles(r, &runOutput{}, "client", session)
}

func TestFileLinks(t *testing.T) {
	var files []workspace.File
	for i := range maxLinks + 1 {
		files = append(files, workspace.File{Name: fmt.Sprintf("out/%d.png", i), Size: int64(i), Type: "image/png"})
	}
	content := linksTo("h", files)
	link, ok := content[3].(*mcp.ResourceLink)
	if len(content) != maxLinks || !ok || link.URI != "rillbox://sessions/h/files/out/11.png" || link.Name != "out/11.png" ||
		link.Title != "11.png" || *link.Size != 11 || link.MIMEType != "image/png" {
		t.Errorf("%d links, the fourth is %+v", len(content), content[3])
	}
}

func FuzzFileURI(f *testing.F) {
	for _, seed := range [][2]string{{"abc", "a/b.txt"}, {"abc", "50%/ü\n"}, {"a/b", "../x"}, {"", ""}, {"%2f", "/files/"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, session, name string) {
		if _, _, ok := parseFileURI(name); ok && !strings.HasPrefix(name, filesPrefix) {
			t.Errorf("%q is taken for a file's", name)
		}
		_, _, _ = parseFileURI(filesPrefix + session + "/files/" + name)
		if session == "" || name == "" {
			return
		}
		uri := fileURI(session, name)
		if strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' }) {
			t.Errorf("%q is no URI", uri)
		}
		if gotSession, gotName, ok := parseFileURI(uri); !ok || gotSession != session || gotName != name {
			t.Errorf("%q of %q became %q, which is %q of %q (%v)", name, session, uri, gotName, gotSession, ok)
		}
	})
}
