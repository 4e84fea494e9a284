package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"rillbox/cache"
	"rillbox/cache/egress"
)

const (
	demoSource = "demo-1.0.tar.gz"
	sourceFile = "/files/" + demoSource
)

// sourceIndex is an index that has a package's source only.
func sourceIndex(t *testing.T) (index *site, sum string) {
	index = newSite(t)
	sum = index.bytes(sourceFile, []byte("the source"))
	index.json(demoPage, file(demoSource, "../.."+sourceFile, sum, "upload-time", "2020-01-01T00:00:00Z"))
	return index, sum
}

// builder makes a wheel of what it fetches, and counts how often.
func builder(t *testing.T, c *cache.Cache, made *int) Builder {
	content := wheel(t, "demo", "1.0")
	return func(ctx context.Context, _ egress.Policy, archive File, fetch func() (string, error), tell func(string, int64, int64)) (string, bool, error) {
		path, hit, err := c.GetOrPut(ctx, "built", archive.SHA256, func(_ context.Context, w io.Writer) error {
			path, err := fetch()
			if err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil || string(text) != "the source" {
				t.Errorf("the source is %q (%v)", text, err)
			}
			*made++
			tell("building", 0, 0)
			_, err = w.Write(content)
			return err
		})
		return path, !hit, err
	}
}

// sourceGrant is a grant that has asked for the page of demo, for which sources are built.
func sourceGrant(t *testing.T, g *Gateway) *Grant {
	gr := newGrant(g)
	t.Cleanup(gr.Building(t.Context()))
	askPage(t, gr, "demo")
	return gr
}

func TestASourceIsBuilt(t *testing.T) {
	index, sum := sourceIndex(t)
	c := openCache(t, t.TempDir(), cache.Options{})
	made := 0
	o := Options{Cache: c, IndexURLs: []string{index.URL + "/simple"}, Build: builder(t, c, &made)}
	g := newGateway(t, o)
	var stages []string
	var plan File
	for i := range 2 {
		gr := sourceGrant(t, g)
		gr.SetProgress(func(stage string, _, _ int64) { stages = append(stages, stage) })
		if status, body := ask(t, gr, "file/"+sum+"/"+demoSource); status != http.StatusForbidden {
			t.Errorf("the source itself: %d %.100q", status, body)
		}
		status, body := ask(t, gr, "built/"+sum+"/"+demoSource)
		var built struct{ Filename, SHA256, URL string }
		if err := json.Unmarshal(body, &built); status != http.StatusOK || err != nil || built.Filename != demoWheel {
			t.Fatalf("%d %s (%v)", status, body, err)
		}
		if status, body := askURL(t, gr, built.URL); status != http.StatusOK || digestHex(body) != built.SHA256 {
			t.Fatalf("the wheel: %d %.100q", status, body)
		}
		served := gr.Served()
		want := File{
			Name: "demo", Version: "1.0", Filename: demoWheel, URL: index.URL + sourceFile + "#sha256=" + sum,
			SHA256: built.SHA256, Source: Built, Cached: i > 0,
		}
		if len(served) == 1 {
			want.Size = served[0].Size
		}
		if len(served) != 1 || served[0] != want {
			t.Errorf("served %+v, want %+v", served, want)
		}
		plan = want
		if status, _ := ask(t, newGrant(g), strings.TrimPrefix(built.URL, gr.BaseURL())); status != http.StatusNotFound {
			t.Errorf("another guest gets it without its source's page: %d", status)
		}
	}
	if made != 1 || index.count(sourceFile) != 1 || len(stages) < 2 || stages[0] != "fetching demo 1.0" || stages[len(stages)-1] != "building" {
		t.Errorf("built %d times, fetched %d times, stages %q", made, index.count(sourceFile), stages)
	}

	// A plan names it, and it is never fetched from where its source is.
	gr := newGrant(g)
	if err := gr.Allow([]File{plan}); err != nil {
		t.Fatal(err)
	}
	link := "file/" + plan.SHA256 + "/" + demoWheel
	if status, _ := ask(t, gr, link); status != http.StatusOK {
		t.Errorf("by a plan: %d", status)
	}
	if err := c.Remove(WheelKind, plan.SHA256); err != nil {
		t.Fatal(err)
	}
	if status, body := ask(t, gr, link); status != http.StatusNotFound || !strings.Contains(string(body), "run the program again") {
		t.Errorf("by a plan whose wheel is gone: %d %s", status, body)
	}
	if _, err := g.Cached(plan); !errors.Is(err, cache.ErrMiss) {
		t.Errorf("it is in the cache: %v", err)
	}
	if index.count(sourceFile) != 1 {
		t.Error("its source was fetched in its place")
	}
	// It is made of what is in the cache when there is no network.
	index.Close()
	offline := newGateway(t, Options{Cache: c, IndexURLs: o.IndexURLs, Build: o.Build, Policy: egress.Policy{NoFetch: true}})
	if status, body := ask(t, sourceGrant(t, offline), "built/"+sum+"/"+demoSource); status != http.StatusOK || made != 1 {
		t.Errorf("offline: %d %s, built %d times", status, body, made)
	}
}

func TestASourceThatIsNotBuilt(t *testing.T) {
	fail := func(err error) Builder {
		return func(context.Context, egress.Policy, File, func() (string, error), func(string, int64, int64)) (string, bool, error) {
			return "", false, err
		}
	}
	fetching := Builder(func(_ context.Context, _ egress.Policy, _ File, fetch func() (string, error), _ func(string, int64, int64)) (string, bool, error) {
		path, err := fetch()
		return path, false, err
	})
	for name, test := range map[string]struct {
		build  Builder
		policy egress.Policy
		path   string // in place of the source's
		page   map[string]any
		status int
		want   string
	}{
		"that can't be":         {build: fail(&UnbuiltError{"demo 1.0 can't be built: no."}), status: 422, want: "demo 1.0 can't be built: no."},
		"by a fault of ours":    {build: fail(errors.New("secret")), status: 500, want: "its log says why"},
		"where none are":        {status: 403, want: "is not built itself"},
		"that is denied":        {build: fetching, policy: egress.Policy{Deny: []string{"host:127.0.0.1"}}, status: 404, want: "no index page"},
		"that is too young":     {build: fetching, policy: egress.Policy{MinReleaseAge: 100 * 365 * 24 * time.Hour}, status: 404, want: "no index page"},
		"of another hash":       {build: fetching, path: sumB + "/" + demoSource, status: 404, want: "no index page"},
		"of another project":    {build: fetching, path: sumA + "/other-1.0.tar.gz", status: 404, want: "no index page"},
		"which is a wheel":      {build: fetching, path: sumA + "/" + demoWheel, page: file(demoWheel, "../../x", sumA), status: 404, want: "no index page"},
		"without a hash":        {build: fetching, path: noHash + "/" + demoSource, page: file(demoSource, "../../x", ""), status: 403, want: "no sha256"},
		"of other bytes":        {build: fetching, path: sumA + "/" + demoSource, page: file(demoSource, "../.."+sourceFile, sumA), status: 502, want: "thrown away"},
		"on a private address":  {build: fetching, path: sumA + "/" + demoSource, page: file(demoSource, "https://10.0.0.1/x", sumA), status: 403, want: "refused"},
		"of a name without one": {build: fetching, path: sumA + "/demo.tar.gz", page: file("demo.tar.gz", "../../x", sumA), status: 404, want: "no index page"},
	} {
		t.Run(name, func(t *testing.T) {
			index, sum := sourceIndex(t)
			if test.page != nil {
				index.json(demoPage, test.page)
			}
			g := newGateway(t, Options{IndexURLs: []string{index.URL + "/simple"}, Build: test.build, Policy: test.policy})
			gr := newGrant(g)
			defer gr.Building(t.Context())()
			ask(t, gr, "simple/demo/")
			path := sum + "/" + demoSource
			if test.path != "" {
				path = test.path
			}
			status, body := ask(t, gr, "built/"+path)
			if status != test.status || !strings.Contains(string(body), test.want) {
				t.Errorf("%d %s, want %d and %q", status, body, test.status, test.want)
			}
		})
	}
}

// TestABuildIsAPartOfItsRun: nothing is built for a guest whose program or cell does not
// run, and what is being built for it ends with that, or when the guest hangs up.
func TestABuildIsAPartOfItsRun(t *testing.T) {
	for name, end := range map[string]func(stop, hangUp context.CancelFunc, gr *Grant){
		"its run":   func(stop, _ context.CancelFunc, _ *Grant) { stop() },
		"its end":   nil,
		"its guest": func(_, hangUp context.CancelFunc, _ *Grant) { hangUp() },
		"its grant": func(_, _ context.CancelFunc, gr *Grant) { gr.Close() },
	} {
		t.Run("ends with "+name, func(t *testing.T) {
			index, sum := sourceIndex(t)
			begun, ended := make(chan struct{}, 9), make(chan struct{}, 9)
			g := newGateway(t, Options{IndexURLs: []string{index.URL + "/simple"}, Build: func(ctx context.Context, _ egress.Policy, _ File, _ func() (string, error), _ func(string, int64, int64)) (string, bool, error) {
				begun <- struct{}{}
				<-ctx.Done()
				ended <- struct{}{}
				return "", false, context.Cause(ctx)
			}})
			path := "built/" + sum + "/" + demoSource
			gr := newGrant(g)
			askPage(t, gr, "demo")
			if status, _ := ask(t, gr, path); status != http.StatusForbidden {
				t.Errorf("before a program: %d", status)
			}
			running, stop := context.WithCancel(t.Context())
			defer stop()
			over := gr.Building(running)
			defer over()
			asking, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			answered := make(chan struct{}, 2)
			for range 2 {
				go func() {
					r, _ := http.NewRequestWithContext(asking, http.MethodGet, gr.BaseURL()+path, nil)
					if resp, err := http.DefaultClient.Do(r); err == nil {
						_ = resp.Body.Close()
					}
					answered <- struct{}{}
				}()
			}
			<-begun
			select {
			case <-begun:
				t.Error("a guest has two builds at a time")
			case <-time.After(50 * time.Millisecond):
			}
			if end != nil {
				end(stop, hangUp, gr)
				<-ended
			} else if over(); len(ended) != 1 {
				t.Error("it is not waited for")
			}
			<-answered
			<-answered
			if !slices.Contains([]string{"its run", "its end"}, name) {
				return
			}
			if status, _ := ask(t, gr, path); status != http.StatusForbidden {
				t.Errorf("after it: %d", status)
			}
		})
	}
}

func TestSourceName(t *testing.T) {
	for _, tc := range []struct{ file, project, version string }{
		{"six-1.17.0.tar.gz", "six", "1.17.0"},
		{"Python.Slug_ify-8.0.tar.gz", "python-slug-ify", "8.0"},
		{"python-slugify-8.0.zip", "python-slugify", "8.0"},
		{"grpc-0.3-19.tar.gz", "grpc-0-3", "19"},
		{"six-.tar.gz", "", ""},
		{"-1.0.tar.gz", "", ""},
		{"six.tar.gz", "", ""},
		{"six-1.0.tar.bz2", "", ""},
		{"six-1.0-py3-none-any.whl", "", ""},
		{"../six-1.0.tar.gz", "", ""},
		{"six-1.0\n.zip", "", ""},
		{"", "", ""},
	} {
		project, version, ok := sourceName(tc.file)
		if project != tc.project || version != tc.version || ok != (tc.project != "") {
			t.Errorf("sourceName(%q) = %q, %q, %v; want %q, %q", tc.file, project, version, ok, tc.project, tc.version)
		}
	}
}

func FuzzSourceName(f *testing.F) {
	for _, seed := range []string{"six-1.17.0.tar.gz", "a-1!2.0+cpu.1.zip", "---.zip", "é-1.zip"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file string) {
		project, version, ok := sourceName(file)
		if _, _, isWheel := wheelName(file); !ok || isWheel {
			if ok {
				t.Errorf("%q is both a source archive and a wheel", file)
			}
			return
		}
		if project == "" || version == "" || project != egress.NormalizePython(project) || !isProjectName(project) {
			t.Errorf("%q: project %q, version %q", file, project, version)
		}
		if strings.ContainsAny(file, "/\\%?#\x00\r\n ") || strings.HasPrefix(file, ".") || strings.Contains(version, "-") {
			t.Errorf("%q passed as a file name", file)
		}
	})
}
