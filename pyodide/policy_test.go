//go:build !windows

package pyodide

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"rillbox/cache/egress"
	"rillbox/deno"
	"rillbox/supervisor/job"
)

// release is a wheel of an index.
type release struct {
	project, version, uploaded string
	requires                   []string
}

// agingIndex serves two versions of the project "aging", one of 30 days and one
// of an hour, and "untold", which has no time.
func agingIndex(t *testing.T) *httptest.Server {
	t.Helper()
	now := time.Now().UTC()
	return releasesIndex(t,
		release{project: "aging", version: "1.0", uploaded: now.Add(-30 * 24 * time.Hour).Format(time.RFC3339)},
		release{project: "aging", version: "2.0", uploaded: now.Add(-time.Hour).Format(time.RFC3339)},
		release{project: "untold", version: fmt.Sprintf("1.%d", now.UnixNano())}) // which no cache has
}

// releasesIndex serves releases at /simple.
func releasesIndex(t *testing.T, releases ...release) *httptest.Server {
	t.Helper()
	type link map[string]any
	pages, files := map[string][]link{}, map[string][]byte{}
	for _, one := range releases {
		wheel := versionedWheel(t, one)
		name := one.project + "-" + one.version + "-py3-none-any.whl"
		sum := sha256.Sum256(wheel)
		files["/"+name] = wheel
		l := link{"filename": name, "url": "/" + name, "hashes": map[string]string{"sha256": hex.EncodeToString(sum[:])}}
		if one.uploaded != "" {
			l["upload-time"] = one.uploaded
		}
		pages[one.project] = append(pages[one.project], l)
	}
	index := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if content, ok := files[r.URL.Path]; ok {
			_, _ = w.Write(content)
			return
		}
		project := strings.Trim(strings.TrimPrefix(r.URL.Path, "/simple"), "/")
		page, ok := pages[project]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
		_ = json.NewEncoder(w).Encode(map[string]any{"meta": map[string]string{"api-version": "1.1"}, "name": project, "files": page})
	}))
	t.Cleanup(index.Close)
	return index
}

// versionedWheel makes a wheel of a module that tells its version.
func versionedWheel(t *testing.T, r release) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	project, version := r.project, r.version
	info := project + "-" + version + ".dist-info/"
	metadata := "Metadata-Version: 2.1\nName: " + project + "\nVersion: " + version + "\n"
	for _, requirement := range r.requires {
		metadata += "Requires-Dist: " + requirement + "\n"
	}
	for name, text := range map[string]string{
		project + ".py":   "version = '" + version + "'",
		info + "METADATA": metadata,
		info + "WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		info + "RECORD":   "",
	} {
		part, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = part.Write([]byte(text))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// A plan holds for the policy that it was made under: a younger release that one
// engine installed is not followed by another that asks for older ones.
func TestPlansAreOfAPolicy(t *testing.T) {
	index := agingIndex(t)
	engine := func(p egress.Policy) *Engine {
		return newEngine(t, func(o *Options) { o.IndexURL, o.Policy = index.URL+"/simple", p })
	}
	aged := egress.Policy{MinReleaseAge: 7 * 24 * time.Hour}
	program := python("import aging; aging.version")
	for _, row := range []struct {
		policy egress.Policy
		want   string
	}{{egress.Policy{}, `"2.0"`}, {aged, `"1.0"`}, {egress.Policy{}, `"2.0"`}, {egress.Policy{NoFetch: true}, `"2.0"`}} {
		if got := completed(t, engine(row.policy), program); string(got.Value) != row.want {
			t.Errorf("%+v: have %s, want %s", row.policy, got.Value, row.want)
		}
	}
	old := engine(aged)
	for _, requirement := range []string{"aging==2.0", "untold"} {
		p := python("print(1)")
		p.Packages = []string{requirement}
		if r := run1(t, old, p); r.Status != job.Failed || len(r.Stdout.Head) > 0 || !strings.Contains(r.Error.Message, strings.TrimSuffix(requirement, "==2.0")) {
			t.Errorf("%s: %s %+v", requirement, r.Status, r.Error)
		}
	}
	off := python("print(1)")
	off.Packages = []string{"untold"}
	if r := run1(t, engine(egress.Policy{NoFetch: true}), off); r.Status != job.Failed || len(r.Stdout.Head) > 0 || !strings.Contains(r.Error.Message, "the operator turned fetching off") {
		t.Errorf("fetching turned off: %s %+v", r.Status, r.Error)
	}
	testPoliciesOfClients(t, index.URL)
	if _, err := New(Options{Options: deno.Options{Cache: old.o.Cache, Policy: egress.Policy{Allow: []string{"["}}}}); err == nil {
		t.Error("a malformed glob passed")
	}
}

// testPoliciesOfClients: the clients of one engine have policies of their own, whatever
// another's runs have left in the cache and whatever waits for the next run.
func testPoliciesOfClients(t *testing.T, index string) {
	e := newEngine(t, func(o *Options) { o.IndexURL, o.Warm = index+"/simple", 1 })
	week := job.PackagePolicy{MinReleaseAge: 7 * 24 * time.Hour}
	deny := job.PackagePolicy{DenyPackages: []string{"aging"}}
	allow := job.PackagePolicy{AllowPackages: []string{"python:six"}}
	cached := job.PackagePolicy{CacheOnly: true}
	for i, row := range []struct {
		own        job.PackagePolicy
		code, want string // its value, or a part of its error
	}{
		{job.PackagePolicy{}, "import aging; aging.version", `"2.0"`},
		{week, "import aging; aging.version", `"1.0"`},
		{deny, "import aging; aging.version", `the operator denied package "aging"`},
		{deny, "import micropip; await micropip.install('aging')", `the operator denied package "aging"`},
		{allow, "import aging; aging.version", `the operator denied package "aging"`},
		{cached, "import aging; aging.version", `"2.0"`},
		{cached, "import untold; untold.version", "turned fetching off"},
		{job.PackagePolicy{}, "import aging; aging.version  # again", `"2.0"`},
	} {
		p := python(row.code)
		p.Policy = row.own
		r := run1(t, e, p)
		said := string(r.Value)
		if r.Error != nil {
			said = r.Error.Message + strings.Join(r.Notes, " ")
		}
		if !strings.Contains(said, row.want) {
			t.Errorf("%+v %s: %s %q %q", row.own, row.code, r.Status, said, r.Notes)
		}
		if i%2 == 0 { // a session takes a second to start
			continue
		}
		s := open(t, e, job.SessionOptions{Language: job.Python, Policy: row.own})
		c := in(t, s, python(row.code))
		s.Close()
		if said = string(c.Value); c.Error != nil {
			said = c.Error.Message + strings.Join(c.Notes, " ")
		}
		if !strings.Contains(said, row.want) {
			t.Errorf("a cell, %+v %s: %s %q %q", row.own, row.code, c.Status, said, c.Notes)
		}
	}
	if _, err := e.Install(t.Context(), job.Program{Language: job.Python, Packages: []string{"aging"}, Policy: deny}, func(job.Event) {}); err == nil || !strings.Contains(err.Error(), "the operator denied") {
		t.Errorf("installing what is denied: %v", err)
	}
}
