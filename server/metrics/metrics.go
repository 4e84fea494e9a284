// Package metrics counts what a server does, in Prometheus' form. Records of tool calls
// and of HTTP requests come in, and what goes on now is asked for when somebody looks.
//
// No label has a value that a client chooses: each is one of a few that are known here.
package metrics

import (
	"cmp"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"rillbox/server"
	"rillbox/supervisor"
	"rillbox/supervisor/job"
)

// Options are what is looked at when somebody asks.
type Options struct {
	Supervisor *supervisor.Supervisor
	Version    string
	// Lookups are the cache's hits and misses, and CacheBytes is its size.
	Lookups    func() (hits, misses int64)
	CacheBytes func() (int64, error)
}

// Metrics are a server's.
type Metrics struct {
	registry *prometheus.Registry

	calls, runs, kills, requests *prometheus.CounterVec
	seconds                      *prometheus.HistogramVec
	callSeconds                  *prometheus.HistogramVec
}

// buckets are in seconds: a warm hello takes 5 ms, an installation minutes.
var buckets = []float64{.002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

// New returns metrics of a server that has done nothing yet.
func New(o Options) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rillbox_" + name, Help: help}, labels)
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "rillbox_" + name, Help: help, Buckets: buckets}, labels)
	}
	m := &Metrics{
		registry:    prometheus.NewRegistry(),
		calls:       counter("tool_calls_total", "Tool calls that have ended, by tool and by how they ended.", "tool", "status"),
		runs:        counter("runs_total", "Programs, by language and by how they ended: a status of run_code, or busy, refused or error where none was run.", "language", "status"),
		kills:       counter("kills_total", "Programs that were ended from outside, by reason.", "reason"),
		requests:    counter("http_requests_total", "HTTP requests that were answered, by method and status.", "method", "status"),
		seconds:     histogram("run_stage_seconds", "Time of programs, by language and stage: waiting, installing, running, and total for the whole call.", "language", "stage"),
		callSeconds: histogram("http_request_seconds", "Time of HTTP requests until they were answered, by method; a stream lasts as long as its client listens.", "method"),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "rillbox_build_info", Help: "1, with the version.",
		ConstLabels: prometheus.Labels{"version": o.Version, "go": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(m.calls, m.runs, m.kills, m.requests, m.seconds, m.callSeconds, build, &now{o: o},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Ended counts a tool call.
func (m *Metrics) Ended(r server.Record) {
	m.calls.WithLabelValues(r.Tool, r.Status).Inc()
	if r.Tool != "run_code" {
		return
	}
	language := cmp.Or(string(r.Language), "none")
	m.runs.WithLabelValues(language, r.Status).Inc()
	switch job.Status(r.Status) {
	case job.Completed, job.Failed:
	case job.TimedOut, job.OutOfMemory, job.Cancelled, job.Crashed:
		m.kills.WithLabelValues(r.Status).Inc()
	default:
		return // it was not run
	}
	for stage, d := range map[string]time.Duration{"waiting": r.Waited, "installing": r.Installing, "running": r.Duration, "total": r.Took} {
		m.seconds.WithLabelValues(language, stage).Observe(d.Seconds())
	}
}

// Answered counts an HTTP request.
func (m *Metrics) Answered(method string, status int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodOptions, http.MethodHead:
	default:
		method = "other"
	}
	m.requests.WithLabelValues(method, strconv.Itoa(status)).Inc()
	m.callSeconds.WithLabelValues(method).Observe(took.Seconds())
}

// Watch adds a gauge that is asked for.
func (m *Metrics) Watch(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "rillbox_" + name, Help: help}, value))
}

// Handler answers with all of them.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4})
}

// now collects what goes on now.
type now struct {
	o Options

	mu      sync.Mutex // of the cache's size, for which all of it is looked through
	bytes   int64
	known   bool
	looked  time.Time
	looking bool
}

// sizeTime is for how long a size of the cache is good enough.
const sizeTime = time.Minute

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("rillbox_"+name, help, labels, nil)
}

var (
	runningDesc  = describe("running", "Programs that run now.")
	waitingDesc  = describe("queue_length", "Programs that wait for a place.")
	placesDesc   = describe("places", "Programs that may run at once.")
	sessionsDesc = describe("sessions", "Sessions that are open.")
	childrenDesc = describe("children", "Child processes: of programs, of sessions, and those that wait for a program.")
	memoryDesc   = describe("children_memory_bytes", "Memory of all child processes.")
	warmDesc     = describe("warm_workers", "Child processes that wait for a program, by the first language that they are for.", "language")
	readyDesc    = describe("runtime_ready", "1 where a language's runtime is on this machine.", "language")
	lookupsDesc  = describe("cache_lookups_total", "Lookups in the cache, by result: hit or miss.", "result")
	bytesDesc    = describe("cache_bytes", "Size of the cache, as it was found out for the scrape before, or a minute ago.")
)

func (n *now) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{runningDesc, waitingDesc, placesDesc, sessionsDesc, childrenDesc, memoryDesc, warmDesc, readyDesc, lookupsDesc, bytesDesc} {
		to <- d
	}
}

func (n *now) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	load := n.o.Supervisor.Load()
	gauge(runningDesc, float64(load.Running))
	gauge(waitingDesc, float64(load.Waiting))
	gauge(placesDesc, float64(n.o.Supervisor.Limits().Running))
	gauge(sessionsDesc, float64(load.Sessions))
	gauge(childrenDesc, float64(load.Children))
	gauge(memoryDesc, float64(load.Memory))
	for _, t := range n.o.Supervisor.Toolchains() {
		d := t.Describe()
		ready := 0.0
		if d.Ready {
			ready = 1
		}
		gauge(warmDesc, float64(d.Warm), string(d.Languages[0].Name))
		for _, language := range d.Languages {
			gauge(readyDesc, ready, string(language.Name))
		}
	}
	hits, misses := n.o.Lookups()
	to <- prometheus.MustNewConstMetric(lookupsDesc, prometheus.CounterValue, float64(hits), "hit")
	to <- prometheus.MustNewConstMetric(lookupsDesc, prometheus.CounterValue, float64(misses), "miss")
	if bytes, known := n.size(); known {
		gauge(bytesDesc, float64(bytes))
	}
}

// size is the cache's, as it was found out last; nobody waits for that.
func (n *now) size() (bytes int64, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.looking && (n.looked.IsZero() || time.Since(n.looked) > sizeTime) {
		n.looking = true
		go n.look()
	}
	return n.bytes, n.known
}

func (n *now) look() {
	bytes, err := n.o.CacheBytes()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.bytes, n.known, n.looked, n.looking = bytes, err == nil, time.Now(), false
}
