// Package traces tells an OpenTelemetry collector of requests and calls: an HTTP request
// is a span, the tool call in it another, and a run's queueing, fetching, installing and
// running are spans below that. Nothing of code, input, output or tokens is in them.
package traces

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"rillbox/server"
	"rillbox/supervisor/job"
)

// Wanted says whether traces are: an endpoint is set, or OpenTelemetry's own variables have
// one.
func Wanted(endpoint string) bool {
	return cmp.Or(endpoint, os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")) != ""
}

// Tracer makes spans.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// tellTime is how often a collector that does not answer is told of.
const tellTime = time.Minute

// Open returns a Tracer that sends to an endpoint, such as http://127.0.0.1:4318; without
// one, as OpenTelemetry's variables say.
func Open(ctx context.Context, endpoint, version string, log *slog.Logger) (*Tracer, error) {
	var options []otlptracehttp.Option
	if endpoint != "" {
		u, err := url.Parse(endpoint)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("want a collector's URL, such as http://127.0.0.1:4318")
		}
		options = append(options, otlptracehttp.WithEndpointURL(u.JoinPath("v1/traces").String()))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "rillbox"), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var told time.Time
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(told) >= tellTime {
			told = time.Now()
			log.Warn("traces are lost: the collector does not take them", "err", err)
		}
	}))
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	return &Tracer{provider, provider.Tracer("rillbox")}, nil
}

// Close sends what is left, as long as ctx lets it.
func (t *Tracer) Close(ctx context.Context) error { return t.provider.Shutdown(ctx) }

// w3c reads and writes the place of a span in its trace.
var w3c propagation.TraceContext

// Request begins the span of an HTTP request, in the trace that its header names, and
// names the span there for what comes of the request. end ends it.
func (t *Tracer) Request(r *http.Request) (end func(status int)) {
	_, span := t.tracer.Start(parent(r.Header.Get(server.TraceHeader)), "request", trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", r.Method[:min(len(r.Method), 20)]),
		attribute.String("rillbox.request", r.Header.Get(server.RequestHeader)),
	))
	carrier := propagation.MapCarrier{}
	w3c.Inject(trace.ContextWithSpan(context.Background(), span), carrier)
	r.Header.Set(server.TraceHeader, carrier.Get("traceparent"))
	return func(status int) {
		span.SetAttributes(attribute.Int("http.response.status_code", status))
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
		span.End()
	}
}

// parent is a context below a span elsewhere; without one, below none.
func parent(traceparent string) context.Context {
	return w3c.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent})
}

// Ended makes the spans of a tool call. When a run's stages began is not known, only how
// long they took: it waited first, and ran last, right after it was installed, which
// begins with fetching.
func (t *Tracer) Ended(r server.Record) {
	end := r.Began.Add(r.Took)
	attributes := []attribute.KeyValue{attribute.String("rillbox.tool", r.Tool), attribute.String("rillbox.status", r.Status)}
	if r.Language != "" {
		attributes = append(attributes, attribute.String("rillbox.language", string(r.Language)))
	}
	if r.Execution != "" {
		attributes = append(attributes, attribute.String("rillbox.execution", r.Execution))
	}
	ctx, call := t.tracer.Start(parent(r.Trace), r.Tool, trace.WithTimestamp(r.Began), trace.WithAttributes(attributes...))
	if r.Status != string(job.Completed) {
		call.SetStatus(codes.Error, r.Status)
	}
	stage := func(name string, from time.Time, took time.Duration) {
		if took > 0 {
			_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(from))
			span.End(trace.WithTimestamp(from.Add(took)))
		}
	}
	ran := end.Add(-r.Duration)
	stage("queue", r.Began, r.Waited)
	stage("install", ran.Add(-r.Installing), r.Installing)
	stage("fetch", ran.Add(-r.Installing), r.Fetching)
	stage("run", ran, r.Duration)
	call.End(trace.WithTimestamp(end))
}
