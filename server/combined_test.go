package server

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

// Both streams as one are one text, in the result and in the structured content.
func TestCombinedOutputIsOneText(t *testing.T) {
	long := strings.Repeat("line\n", 100_000)
	s := newServer(scripted{run: func(_ context.Context, p job.Program, _ func(job.Event)) (job.Result, error) {
		r := job.Result{Status: job.Completed, Combined: p.Combined, Stdout: kept("out\nerr\n")}
		switch p.Code {
		case "long":
			r.Stdout = kept(long)
		case "nothing":
			r.Stdout = kept("")
		}
		return r, nil
	}}, nil)
	session := dial(t, s, nil)
	run := func(code string) (res *mcp.CallToolResult, fields map[string]json.RawMessage) {
		res = call(t, session, "run_code", `{"language":"python","output":"combined","code":"`+code+`"}`)
		checkOutput(t, session, "run_code", res)
		return res, structured[map[string]json.RawMessage](t, res)
	}
	res, fields := run("both")
	if _, apart := fields["stdout"]; apart || fields["stderr"] != nil || string(fields["output"]) != `"out\nerr\n"` {
		t.Errorf("the structured content is %s", res.StructuredContent)
	}
	if said := text(t, res); !strings.Contains(said, "\noutput:\nout\nerr\n") || strings.Contains(said, "stdout") {
		t.Errorf("the text is %q", said)
	}
	if res, fields = run("nothing"); string(fields["output"]) != `""` || !strings.Contains(text(t, res), "printed nothing") {
		t.Errorf("nothing is %s, %q", fields["output"], text(t, res))
	}
	res, _ = run("long")
	out := structured[runOutput](t, res)
	uri := "rillbox://executions/" + out.ExecutionID + "/output"
	if out.Truncated == nil || out.Truncated.Output == 0 || out.Truncated.Stdout != 0 || !strings.Contains(text(t, res), uri) {
		t.Errorf("truncated %+v, %.300s", out.Truncated, text(t, res))
	}
	if whole, err := session.ReadResource(context.Background(), &mcp.ReadResourceParams{URI: uri}); err != nil || whole.Contents[0].Text != long {
		t.Errorf("the resource is not the whole: %v", err)
	}
}

func TestCombinedOutputIsForRunsAlone(t *testing.T) {
	s := newServer(scripted{}, func(o *Options) {
		toolchain := withSessions{scripted{run: func(context.Context, job.Program, func(job.Event)) (job.Result, error) {
			t.Error("the cell was run")
			return job.Result{}, nil
		}}}
		o.Supervisor = supervisor.New(testLimits(), o.Log, toolchain)
	})
	res := call(t, dial(t, s, nil), "run_code", `{"language":"python","code":"1","session_id":"default","output":"combined"}`)
	if !res.IsError || !strings.Contains(text(t, res), "combined output is for runs without a session") {
		t.Errorf("%q", text(t, res))
	}
}
