package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

// A run is one line of the log, with who, what and how it went; nothing of what the
// program is, was given, or printed.
func TestARunIsOneLineOfTheLog(t *testing.T) {
	var mu sync.Mutex
	var log strings.Builder
	s := newServer(scripted{run: func(_ context.Context, p job.Program, _ func(job.Event)) (job.Result, error) {
		switch p.Code {
		case "refused-secret":
			return job.Result{}, job.Refuse("no flag secret")
		case "busy-secret":
			return job.Result{}, &supervisor.BusyError{}
		case "broken-secret":
			return job.Result{}, errors.New("the disk is full")
		}
		return job.Result{
			Status: job.Failed, ExitCode: 1, Stdout: job.Captured{Head: []byte("secret\n")}, Value: json.RawMessage(`"secret"`),
			Error:    &job.GuestError{Name: "secret", Message: "secret", Traceback: "secret"},
			Duration: 3 * time.Second, Installing: 2 * time.Second, CPU: time.Second, PeakMemory: 4096,
			Packages: []job.Package{{Name: "left-pad", Version: "1.3.0", Source: "npm"}, {Name: "https://u:secret@host.example/mod.ts?secret", Source: "url"}},
			Notes:    []string{"secret"},
		}, nil
	}}, func(o *Options) {
		o.Log = slog.New(slog.NewJSONHandler(locked{&mu, &log}, nil))
	})
	waited := regexp.MustCompile(`"waited_ms":\d+`) // on a busy machine
	for _, era := range []string{handshakeEra, sessionlessEra} {
		session := dialEra(t, s, nil, era)
		for _, row := range []struct{ code, want string }{
			{"secret", `"client":"test 1","language":"python","packages":"left-pad 1.3.0, host.example/mod.ts","status":"failed","exit_code":1,"waited_ms":0,"install_ms":2000,"run_ms":3000,"cpu_ms":1000,"peak_memory_bytes":4096}`},
			{"refused-secret", `"client":"test 1","language":"python","status":"refused"}`},
			{"busy-secret", `"client":"test 1","language":"python","status":"busy"}`},
			{"broken-secret", `"client":"test 1","language":"python","status":"error","error":"the disk is full"}`},
		} {
			mu.Lock()
			log.Reset()
			mu.Unlock()
			call(t, session, "run_code", `{"language":"python","code":"`+row.code+`","stdin":"secret","args":["secret"],"permissions":["--allow-net=secret"]}`)
			mu.Lock()
			got := waited.ReplaceAllString(log.String(), `"waited_ms":0`)
			mu.Unlock()
			if !strings.HasSuffix(got, row.want+"\n") || strings.Count(got, "\n") != 1 || strings.Contains(got, "secret") {
				t.Errorf("%s, %s: the log is\n%s", era, row.code, got)
			}
		}
	}
}
