//go:build !windows

package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor/job"
)

// inFiles is a toolchain whose runs do something in their directory.
func inFiles(run func(dir string) job.Result) scripted {
	return scripted{run: func(_ context.Context, p job.Program, _ func(job.Event)) (job.Result, error) {
		return run(p.Workspace), nil
	}}
}

func put(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		t.Error(err)
	}
}

// TestFilesComeWithARunAndGoBack: what comes with a run without a session is in its
// directory, and what it makes there comes back, within the limit.
func TestFilesComeWithARunAndGoBack(t *testing.T) {
	var dir string
	session := dial(t, newServer(inFiles(func(in string) job.Result {
		dir = in
		for name, want := range map[string]string{"a.csv": "1,2", "deep/b": "\x00\xff"} {
			if got, err := os.ReadFile(filepath.Join(in, name)); string(got) != want {
				t.Errorf("%s has %q, %v", name, got, err)
			}
		}
		put(t, in, "a.csv", []byte("1,2,3"))
		put(t, in, "made.txt", []byte("text"))
		put(t, in, "made.bin", []byte{0, 0xff})
		put(t, in, "large.txt", make([]byte, maxFilesBack+1))
		return job.Result{Status: job.Completed}
	}), nil), nil)
	res := call(t, session, "run_code", `{"language":"python","code":"1","files":{"a.csv":"1,2","deep/b":{"base64":"AP8="}}}`)
	out := structured[runOutput](t, res)
	have := map[string]string{}
	for _, f := range out.Files {
		have[f.Path] = fmt.Sprintf("%s %d %s%s", f.Change, f.SizeBytes, f.Text, f.Base64)
	}
	for name, want := range map[string]string{
		"a.csv": "changed 5 1,2,3", "made.txt": "created 4 text", "made.bin": "created 2 AP8=",
		"large.txt": fmt.Sprintf("created %d ", maxFilesBack+1),
	} {
		if have[name] != want {
			t.Errorf("%s is told as %q, want %q", name, have[name], want)
		}
	}
	if len(have) != 4 || !strings.Contains(fmt.Sprint(out.Notes), "not given back, for want of room: 1 file (") {
		t.Errorf("have %v, notes %q", have, out.Notes)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the run's directory is still there: %v", err)
	}
	for args, want := range map[string]string{
		`{"language":"python","code":"1","files":{"../a":"x"}}`: "..",
		`{"language":"python","code":"1","files":{"a":7}}`:      "must be the text",
	} {
		if res := call(t, session, "run_code", args); !res.IsError || !strings.Contains(text(t, res), want) {
			t.Errorf("%s: %q", args, text(t, res))
		}
	}
}

// TestOfManyFilesSomeAreTold, and how many more there are.
func TestOfManyFilesSomeAreTold(t *testing.T) {
	session := dial(t, newServer(inFiles(func(in string) job.Result {
		for i := range maxFilesTold + 50 {
			put(t, in, fmt.Sprintf("%03d.txt", i), []byte("text"))
		}
		return job.Result{Status: job.Completed}
	}), nil), nil)
	res := call(t, session, "run_code", `{"language":"python","code":"1","files":{}}`)
	out := structured[runOutput](t, res)
	if len(out.Files) != maxFilesTold || out.Files[0].Text != "text" || !strings.Contains(fmt.Sprint(out.Notes), "50 more files") {
		t.Errorf("%d files are told, with %q", len(out.Files), out.Notes)
	}
	if n := strings.Count(text(t, res), ".txt"); n != maxFilesTold {
		t.Errorf("the text tells of %d", n)
	}
}

// TestWhatCantBeShownIsKept as a file where there is a directory, under a name that
// nothing has, and told of in each case.
func TestWhatCantBeShownIsKept(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString
	large := strings.Repeat("x", maxOutput+1)
	for _, row := range []struct {
		name    string
		display job.Display
		file    string // that there is with a directory
		content string // its type: picture, resource or nothing
		notes   string // part of what is told
	}{
		{"a picture", job.Display{"image/png": encoded(pngOf(t, blank(2, 2))), "text/plain": "<p>"}, "", "picture", ""},
		{"a picture that is scaled down", job.Display{"image/png": encoded(pngOf(t, blank(2400, 10)))}, "", "picture", "Display 1 is scaled down"},
		{"a picture that is too large", job.Display{"image/gif": encoded(gifOf(t, 2400, 10))}, "display-2.gif", "", "too large to be shown"},
		{"what only claims to be a picture", job.Display{"image/png": encoded([]byte("text"))}, "display-2.png", "", "not a PNG"},
		{"what is no base64", job.Display{"image/png": "%%%"}, "", "", "not base64"},
		{"a drawing", job.Display{"image/svg+xml": "<svg/>"}, "", "resource", ""},
		{"a drawing that is too large", job.Display{"image/svg+xml": large}, "display-2.svg", "", "is left out"},
		{"a table that is too large", job.Display{"text/html": large, "text/plain": "a table"}, "display-2.html", "", "is left out"},
		{"a document", job.Display{"application/pdf": encoded([]byte("%PDF"))}, "display-2.pdf", "", "is no form that is shown"},
		{"a document beside its picture", job.Display{"application/pdf": encoded([]byte("%PDF")), "image/png": encoded(pngOf(t, blank(2, 2)))}, "", "picture", ""},
		{"a sound", job.Display{"audio/x-wav; rate=8000": encoded([]byte("RIFF"))}, "display-2.x", "", "is no form that is shown"},
	} {
		for _, files := range []string{"", `,"files":{}`} {
			t.Run(row.name+files, func(t *testing.T) {
				session := dial(t, newServer(inFiles(func(dir string) job.Result {
					if dir != "" {
						for _, taken := range []string{"gif", "png", "svg", "html", "pdf", "x"} {
							put(t, dir, "display-1."+taken, []byte("the program's own"))
						}
					}
					return job.Result{Status: job.Completed, Displays: []job.Display{row.display}}
				}), nil), nil)
				res := call(t, session, "run_code", `{"language":"python","code":"1"`+files+`}`)
				out := structured[runOutput](t, res)
				notes := strings.Join(out.Notes, "\n")
				if !strings.Contains(notes, row.notes) || row.notes == "" && notes != "" {
					t.Errorf("the notes are %q", notes)
				}
				content := ""
				for _, c := range res.Content {
					switch c.(type) {
					case *mcp.ImageContent:
						content += "picture"
					case *mcp.EmbeddedResource:
						content += "resource"
					}
				}
				if content != row.content {
					t.Errorf("the content is %q", content)
				}
				if files == "" {
					if row.file != "" && !strings.Contains(notes, "would keep it as a file") {
						t.Errorf("without a directory it is told that %q", notes)
					}
					return
				}
				kept := slices.IndexFunc(out.Files, func(f changedFile) bool { return f.Path == row.file })
				if row.file != "" && (kept < 0 || out.Files[kept].Change != "created" || !strings.Contains(notes, "it is the file "+row.file)) {
					t.Errorf("it is not kept: %+v, %q", out.Files, notes)
				}
				for _, f := range out.Files {
					if strings.HasPrefix(f.Path, "display-1.") && f.Text != "the program's own" {
						raw, _ := json.Marshal(f)
						t.Errorf("the program's file was replaced: %s", raw)
					}
				}
			})
		}
	}
}
