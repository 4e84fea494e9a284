package server

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

// Whoever asks hears of each call once, with what it was and how it ended, and nothing of
// what it was given or gave.
func TestEachCallIsToldOf(t *testing.T) {
	var records []Record
	s := newServer(scripted{
		run: func(_ context.Context, p job.Program, _ func(job.Event)) (job.Result, error) {
			switch p.Code {
			case "busy-secret":
				return job.Result{}, &supervisor.BusyError{}
			case "refused-secret":
				return job.Result{}, job.Refuse("no secret")
			case "broken-secret":
				return job.Result{}, errors.New("the disk is full of secrets")
			case "panic":
				panic("secret")
			}
			return job.Result{
				Status: job.Failed, Stdout: job.Captured{Head: []byte("secret\n")}, Value: json.RawMessage(`"secret"`),
				Duration: 3 * time.Second, Installing: 2 * time.Second, PeakMemory: 4096,
			}, nil
		},
		install: func(context.Context, []string, func(job.Event)) ([]job.Package, error) { return nil, nil },
	}, func(o *Options) { o.Ended = func(r Record) { records = append(records, r) } })
	session := dialEra(t, s, nil, handshakeEra)
	for _, row := range []struct{ tool, arguments, want string }{
		{"run_code", `{"language":"python","code":"secret","stdin":"secret","args":["secret"],"packages":["left-pad","https://u:secret@host.example/x?secret","x @ https://u:secret@host.example/x.whl"]}`, "run_code failed python left-pad,host.example/x,x host.example/x.whl - 3s 2s 4096"},
		{"run_code", `{"language":"python","code":"busy-secret","permissions":[]}`, "run_code busy python   0s 0s 0"},
		{"run_code", `{"language":"python","code":"refused-secret","permissions":["--allow-net=a.example"]}`, "run_code refused python  --allow-net=a.example 0s 0s 0"},
		{"run_code", `{"language":"python","code":"broken-secret"}`, "run_code error python  - 0s 0s 0"},
		{"run_code", `{"language":"python","code":"panic"}`, "run_code error python  - 0s 0s 0"},
		{"run_code", `{"language":"python","code":"x","kode":"secret"}`, "run_code refused   - 0s 0s 0"},
		{"run_code", `{"language":"secret","code":"x"}`, "run_code refused   - 0s 0s 0"},
		{"install_packages", `{"language":"python","packages":["numpy"]}`, "install_packages completed python numpy - 0s 0s 0"},
		{"list_runtimes", `{}`, "list_runtimes completed   - 0s 0s 0"},
		{"cancel_execution", `{"execution_id":"secret"}`, "cancel_execution error   - 0s 0s 0"},
	} {
		records = nil
		call(t, session, row.tool, row.arguments)
		if len(records) != 1 {
			t.Errorf("%s %s: told of %d calls", row.tool, row.arguments, len(records))
			continue
		}
		r := records[0]
		permissions := strings.Join(r.Permissions, ",")
		if r.Permissions == nil {
			permissions = "-"
		}
		got := strings.Join([]string{r.Tool, r.Status, string(r.Language), strings.Join(r.Packages, ","), permissions, r.Duration.String(), r.Installing.String(), json.Number(jsonNumber(float64(r.PeakMemory))).String()}, " ")
		if got != row.want {
			t.Errorf("%s %s: it is told as\n%s, want\n%s", row.tool, row.arguments, got, row.want)
		}
		if r.In != int64(len(row.arguments)) || r.Out == 0 || r.Client == "" || r.Began.IsZero() || r.Took <= 0 {
			t.Errorf("%s: the record is %+v", row.tool, r)
		}
		if all, _ := json.Marshal(r); strings.Contains(string(all), "secret") {
			t.Errorf("%s: the record is %s", row.tool, all)
		}
	}
}
