package metrics

import (
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"rillbox/server"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

func open(size func() (int64, error)) *Metrics {
	return New(Options{
		Supervisor: supervisor.New(job.DefaultLimits(), slog.New(slog.DiscardHandler)), Version: "1.2.3",
		Lookups: func() (int64, int64) { return 7, 3 }, CacheBytes: size,
	})
}

func read(t *testing.T, m *Metrics) string {
	t.Helper()
	r := httptest.NewRecorder()
	m.Handler().ServeHTTP(r, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(r.Body)
	if err != nil || r.Code != 200 {
		t.Fatalf("%d, %v: %s", r.Code, err, text)
	}
	return string(text)
}

func TestWhatHappensIsCounted(t *testing.T) { synctest.Test(t, testCounts) }

func testCounts(t *testing.T) {
	looks := 0
	m := open(func() (int64, error) { looks++; return 4096, nil })
	for _, r := range []server.Record{
		{Tool: "run_code", Status: "completed", Language: "python", Waited: 3 * time.Millisecond, Installing: 2 * time.Second, Duration: 20 * time.Millisecond, Took: 3 * time.Second},
		{Tool: "run_code", Status: "timed_out", Language: "python", Took: 30 * time.Second},
		{Tool: "run_code", Status: "out_of_memory", Language: "javascript"},
		{Tool: "run_code", Status: server.StatusBusy, Language: "javascript", Took: time.Hour},
		{Tool: "run_code", Status: server.StatusRefused, Client: "identity", Packages: []string{"package"}},
		{Tool: "write_file", Status: "completed"},
	} {
		m.Ended(r)
	}
	m.Answered("POST", 200, time.Millisecond)
	m.Answered("BREW", 405, time.Millisecond)
	m.Watch("identities", "Identities.", func() float64 { return 2 })
	read(t, m)
	synctest.Wait() // for the cache's size
	text := read(t, m)
	for _, want := range []string{
		`rillbox_build_info{go="`,
		`rillbox_runs_total{language="python",status="completed"} 1`,
		`rillbox_runs_total{language="python",status="timed_out"} 1`,
		`rillbox_runs_total{language="javascript",status="busy"} 1`,
		`rillbox_runs_total{language="none",status="refused"} 1`,
		`rillbox_kills_total{reason="timed_out"} 1`,
		`rillbox_kills_total{reason="out_of_memory"} 1`,
		`rillbox_tool_calls_total{status="completed",tool="write_file"} 1`,
		`rillbox_run_stage_seconds_sum{language="python",stage="installing"} 2`,
		`rillbox_run_stage_seconds_count{language="python",stage="total"} 2`,
		`rillbox_run_stage_seconds_sum{language="python",stage="total"} 33`,
		`rillbox_run_stage_seconds_count{language="javascript",stage="waiting"} 1`,
		`rillbox_http_requests_total{method="POST",status="200"} 1`,
		`rillbox_http_requests_total{method="other",status="405"} 1`,
		`rillbox_running 0`, `rillbox_queue_length 0`, `rillbox_sessions 0`, `rillbox_children 0`, `rillbox_children_memory_bytes 0`,
		`rillbox_cache_lookups_total{result="hit"} 7`, `rillbox_cache_lookups_total{result="miss"} 3`, `rillbox_cache_bytes 4096`,
		`rillbox_identities 2`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
	for _, no := range []string{"identity", "package", `status="busy",`} {
		if strings.Contains(text, `"`+no) {
			t.Errorf("a label says %s", no)
		}
	}
	synctest.Wait()
	if looks != 1 {
		t.Errorf("the cache was looked through %d times", looks)
	}
	problems, err := testutil.GatherAndLint(m.registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("Prometheus' linter says %v %v", problems, err)
	}
}

func TestACacheThatCannotBeLookedThroughLeavesTheRest(t *testing.T) {
	m := open(func() (int64, error) { return 0, errors.New("the disk is gone") })
	read(t, m)
	text := read(t, m)
	if strings.Contains(text, "rillbox_cache_bytes") || !strings.Contains(text, "rillbox_running 0") {
		t.Errorf("the metrics are\n%s", text)
	}
}
