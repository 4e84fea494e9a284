package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/pyodide"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

// golden compares got with a file of testdata, or writes it with -update.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it anew); got:\n%s", file, got)
	}
}

func TestToolsGolden(t *testing.T) {
	session := dial(t, newServer(says(job.Result{}), nil), nil)
	res, err := session.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(res.Tools); err != nil {
		t.Fatal(err)
	}
	golden(t, "tools.json", out.String())
	golden(t, "instructions.txt", session.InitializeResult().Instructions+"\n")
}

func TestToolsAreDescribedInFull(t *testing.T) {
	session := dial(t, newServer(says(job.Result{}), nil), nil)
	res, err := session.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Tools) != 12 {
		t.Errorf("%d tools, want 12", len(res.Tools))
	}
	for _, tool := range res.Tools {
		raw, err := json.Marshal(tool.Annotations)
		if err != nil {
			t.Fatal(err)
		}
		for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
			if !bytes.Contains(raw, []byte(`"`+hint+`":`)) {
				t.Errorf("%s: %s is not set", tool.Name, hint)
			}
		}
		if tool.Title == "" || tool.Description == "" {
			t.Errorf("%s lacks a title or a description", tool.Name)
		}
		walkSchema(t, tool.Name, tool.InputSchema, true, true)
		walkSchema(t, tool.Name, tool.OutputSchema, true, false)
	}
}

// walkSchema checks that every argument says what it is, and no part of an answer,
// and that nothing may be null.
func walkSchema(t *testing.T, path string, schema any, root, described bool) {
	s, ok := schema.(map[string]any)
	if !ok {
		t.Errorf("%s: %v is not an object schema, which some clients cannot read", path, schema)
		return
	}
	if _, isList := s["type"].([]any); isList {
		t.Errorf("%s: type %v is a union, which some clients cannot read", path, s["type"])
	}
	if has := s["description"] != nil; !root && has != (described || s["type"] == nil) && !strings.HasSuffix(path, "[]") {
		t.Errorf("%s has a description: %v, want %v", path, has, described)
	}
	if properties, ok := s["properties"].(map[string]any); ok {
		for name, property := range properties {
			walkSchema(t, path+"."+name, property, false, described)
		}
	}
	if items, ok := s["items"]; ok {
		walkSchema(t, path+"[]", items, false, described)
	}
}

func TestWordsTellWhatIsInForce(t *testing.T) {
	granting := func(flags ...string) scripted {
		return scripted{describe: func() job.Description {
			return job.Description{Languages: pyodide.Languages, Permissions: flags}
		}}
	}
	limits := testLimits()
	limits.Memory = 256 << 20
	limits.Timeout = 7e9
	for _, row := range []struct {
		name    string
		server  *Server
		want    []string
		without []string
	}{
		{"none granted", newServer(granting(), nil), []string{"no network"}, []string{"JavaScript", "offline"}},
		{"some granted", newServer(granting("--allow-net=example.com"), nil), []string{"--allow-net=example.com"}, []string{"no network"}},
		{"files by name", newServer(granting("--allow-read=/data"), nil), []string{"--allow-read=/data, and nothing else;"}, []string{"open() finds"}},
		{"any file", newServer(granting("--allow-read"), nil), []string{"open() finds files only at paths that a flag names"}, nil},
		{"offline", newServer(granting(), func(o *Options) { o.Offline = true }), []string{"offline"}, nil},
		{"limits", newServer(granting(), func(o *Options) {
			o.Supervisor = supervisor.New(limits, o.Log, granting())
		}), []string{"256 MiB", "7 s"}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := row.server
			words := s.instructions() + s.runDescription() + s.installDescription()
			for _, w := range row.want {
				if !strings.Contains(words, w) {
					t.Errorf("%q is not said in:\n%s", w, words)
				}
			}
			for _, w := range row.without {
				if strings.Contains(words, w) {
					t.Errorf("%q is said in:\n%s", w, words)
				}
			}
		})
	}
	if *newServer(granting("--deny-net"), nil).granted() || !*newServer(granting("-A"), nil).granted() {
		t.Error("run_code's destructiveHint does not follow the grants")
	}
}

func TestListRuntimes(t *testing.T) {
	s := newServer(scripted{describe: func() job.Description {
		return job.Description{
			Languages:   pyodide.Languages,
			Versions:    map[string]string{"python": "3.14.2", "pyodide": "314.0.7"},
			Permissions: []string{"--allow-net=example.com"},
			Wall:        "namespaces",
		}
	}}, func(o *Options) { o.Offline = true })
	session := dial(t, s, nil)
	res := call(t, session, "list_runtimes", `{}`)
	checkOutput(t, session, "list_runtimes", res)
	out := structured[runtimesOutput](t, res)
	if !out.Offline || out.Rillbox != "1.2.3" || int64(out.Limits["memory_bytes"]) != testLimits().Memory ||
		len(out.Runtimes) != 1 || out.Runtimes[0].Versions["pyodide"] != "314.0.7" || out.Runtimes[0].Ready || out.Runtimes[0].Wall != "namespaces" {
		t.Errorf("got %+v", out)
	}
	for _, want := range []string{"python 3.14.2", "not in the cache", "--allow-net=example.com", "512 MiB", "offline", "wall: namespaces"} {
		if !strings.Contains(text(t, res), want) {
			t.Errorf("the text does not say %q:\n%s", want, text(t, res))
		}
	}
	if res := call(t, session, "list_runtimes", `{"verbose":true}`); !res.IsError || !strings.Contains(text(t, res), "takes no arguments") {
		t.Errorf("an argument too many gave %q", text(t, res))
	}
}

// checkOutput validates a structured result against the tool's output schema.
func checkOutput(t *testing.T, session *mcp.ClientSession, tool string, res *mcp.CallToolResult) {
	t.Helper()
	tools, err := session.ListTools(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, described := range tools.Tools {
		if described.Name != tool {
			continue
		}
		raw, err := json.Marshal(described.OutputSchema)
		if err != nil {
			t.Fatal(err)
		}
		var schema jsonschema.Schema
		if err := json.Unmarshal(raw, &schema); err != nil {
			t.Fatal(err)
		}
		resolved, err := schema.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(res.StructuredContent); err != nil {
			t.Errorf("%s: the result does not follow the output schema: %v", tool, err)
		}
		return
	}
	t.Fatalf("no tool %s", tool)
}

func TestInstallPackages(t *testing.T) {
	s := newServer(scripted{install: func(ctx context.Context, packages []string, emit func(job.Event)) ([]job.Package, error) {
		if packages[0] == "nonesuch" {
			return nil, fmt.Errorf("package %s is not in the index", packages[0])
		}
		if packages[0] == "slow" {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		emit(job.Event{Kind: job.Stage, Text: "fetching numpy", Done: 2_400_000, Total: 12_100_000})
		return []job.Package{{Name: "numpy", Version: "2.3.1", Source: "pyodide"}, {Name: "six", Version: "1.17.0", Source: "index", Cached: true}}, nil
	}}, func(o *Options) {
		limits := testLimits()
		limits.InstallTimeout = time.Second
		o.Supervisor = supervisor.New(limits, o.Log, o.Supervisor.Toolchains()...)
	})
	session := dial(t, s, nil)
	res := call(t, session, "install_packages", `{"language":"py","packages":["numpy"]}`)
	checkOutput(t, session, "install_packages", res)
	if got, want := text(t, res), "installed: numpy 2.3.1 (pyodide), six 1.17.0 (index, cached)"; got != want || res.IsError {
		t.Errorf("got %q, want %q", got, want)
	}
	for args, want := range map[string]string{
		`{"language":"py","packages":["nonesuch"]}`: "cannot install nonesuch: package nonesuch is not in the index",
		`{"language":"py","packages":["slow"]}`:     "it took longer than 1 s",
		`{"language":"py","packages":[]}`:           "packages is empty",
		`{"language":"py","packages":[""]}`:         "packages[0] is empty",
		`{"language":"py"}`:                         "install_packages needs packages",
		`{"language":"cobol","packages":["x"]}`:     "COBOL can't run here",
	} {
		if res := call(t, session, "install_packages", args); !res.IsError || !strings.Contains(text(t, res), want) {
			t.Errorf("%s gave %q, want %q", args, text(t, res), want)
		}
	}
}
