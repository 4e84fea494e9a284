package traces

import (
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"rillbox/server"
)

// A request and what comes of it are one trace, which is its client's.
func TestARequestIsATrace(t *testing.T) {
	var mu sync.Mutex
	spans := map[string]*otlp.Span{}
	whole := ""
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &sent)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		mu.Lock()
		defer mu.Unlock()
		whole += sent.String()
		for _, resource := range sent.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					spans[span.Name] = span
				}
			}
		}
	}))
	defer receiver.Close()
	tracer, err := Open(t.Context(), receiver.URL, "1.2.3", slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	const traceID, clientSpan = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	r := httptest.NewRequest("POST", "/mcp", strings.NewReader("code"))
	r.Header.Set("Traceparent", "00-"+traceID+"-"+clientSpan+"-01")
	r.Header.Set("Tracestate", "vendor=secret")
	r.Header.Set("X-Request-Id", "req-1")
	r.Header.Set("Authorization", "Bearer secret")
	end := tracer.Request(r)
	began := time.Now().Add(-10 * time.Second)
	tracer.Ended(server.Record{
		Began: began, Took: 10 * time.Second, Trace: r.Header.Get("Traceparent"), Tool: "run_code", Status: "failed", Language: "python",
		Client: "alice", Packages: []string{"numpy"}, Waited: time.Second, Installing: 2 * time.Second, Fetching: time.Second, Duration: 3 * time.Second,
	})
	end(200)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := tracer.Close(ctx); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	at := func(d time.Duration) uint64 { return uint64(began.Add(d).UnixNano()) }
	for name, want := range map[string]struct {
		parent   string
		from, to uint64
	}{
		"request":  {clientSpan, 0, 0},
		"run_code": {"request", at(0), at(10 * time.Second)},
		"queue":    {"run_code", at(0), at(time.Second)},
		"install":  {"run_code", at(5 * time.Second), at(7 * time.Second)},
		"fetch":    {"run_code", at(5 * time.Second), at(6 * time.Second)},
		"run":      {"run_code", at(7 * time.Second), at(10 * time.Second)},
	} {
		span := spans[name]
		if span == nil {
			t.Errorf("there is no span %s", name)
			continue
		}
		parent := want.parent
		if above := spans[parent]; above != nil {
			parent = hex.EncodeToString(above.SpanId)
		}
		if hex.EncodeToString(span.TraceId) != traceID || hex.EncodeToString(span.ParentSpanId) != parent {
			t.Errorf("%s is in trace %x below %x, want %s and %s", name, span.TraceId, span.ParentSpanId, traceID, parent)
		}
		if want.to != 0 && (span.StartTimeUnixNano != want.from || span.EndTimeUnixNano != want.to) {
			t.Errorf("%s lasts from %d to %d, want %d to %d", name, span.StartTimeUnixNano, span.EndTimeUnixNano, want.from, want.to)
		}
	}
	for _, secret := range []string{"secret", "alice", "numpy", `"code"`} {
		if strings.Contains(whole, secret) {
			t.Errorf("the spans say %s: %s", secret, whole)
		}
	}
	for _, said := range []string{"req-1", "python", "failed", "rillbox", "1.2.3"} {
		if !strings.Contains(whole, said) {
			t.Errorf("no span says %s", said)
		}
	}
}

func TestWhatIsNoCollectorIsRefused(t *testing.T) {
	for _, endpoint := range []string{"127.0.0.1:4318", "grpc://127.0.0.1:4317", "http://", "://"} {
		if _, err := Open(t.Context(), endpoint, "", slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%q is taken", endpoint)
		}
	}
}

func TestTracesAreMadeOnlyWhereTheyAreWanted(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
	if Wanted("") || !Wanted("http://127.0.0.1:4318") {
		t.Error("the setting does not decide")
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318")
	if !Wanted("") {
		t.Error("the variable does not decide")
	}
}
