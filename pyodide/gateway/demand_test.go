package gateway

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

func TestAGrantShowsWhatALockFileHas(t *testing.T) {
	index := newSite(t)
	var sums []string
	var files []map[string]any
	for _, version := range []string{"1.0", "2.0"} {
		sums = append(sums, index.bytes("/files/"+version, wheel(t, "demo", version)))
		files = append(files, file("demo-"+version+"-py3-none-any.whl", "../../files/"+version, sums[len(sums)-1]))
	}
	index.json(demoPage, files...)
	index.json("/simple/other/", file("other-1.0-py3-none-any.whl", "../../files/1.0", sums[0]))
	g := newGateway(t, Options{IndexURLs: []string{index.URL + "/simple"}, Lock: lockOf("own", "1.0", "own-1.0-py3-none-any.whl", sumA)})
	free := newGrant(g)
	newer := askPage(t, free, "demo").Files[1].URL

	locked := []Locked{{"demo", "1.0", map[string]string{sums[0]: "demo-1.0-py3-none-any.whl"}}}
	for _, frozen := range []bool{false, true} {
		gr := newGrant(g)
		gr.Demand("uv.lock", locked, frozen)
		p := askPage(t, gr, "demo")
		if !slices.Equal(p.Versions, []string{"1.0"}) || len(p.Files) != 1 {
			t.Errorf("frozen %v: %+v", frozen, p)
		}
		if status, body := askURL(t, gr, p.Files[0].URL); status != http.StatusOK {
			t.Errorf("frozen %v: the locked file: %d %s", frozen, status, body)
		}
		if status, _ := ask(t, gr, strings.TrimPrefix(newer, free.BaseURL())); status != http.StatusNotFound {
			t.Errorf("frozen %v: a file that the lock file does not have: %d", frozen, status)
		}
		status, body := ask(t, gr, "simple/other/")
		if frozen != (status == http.StatusForbidden) || frozen && !strings.Contains(string(body), "uv.lock does not have other: run `rillbox lock FILE`") {
			t.Errorf("frozen %v: another project: %d %s", frozen, status, body)
		}
		status, body = ask(t, gr, "cdn/own-1.0-py3-none-any.whl")
		if frozen != strings.Contains(string(body), "uv.lock does not have own 1.0") {
			t.Errorf("frozen %v: Pyodide's own: %d %s", frozen, status, body)
		}
	}

	gr := newGrant(g)
	gr.Demand("uv.lock", []Locked{{"demo", "1.0", map[string]string{sumA: "demo-1.0-py3-none-any.whl"}}}, false)
	status, body := ask(t, gr, "simple/demo/")
	want := "is what uv.lock has; its digest there is " + sumA + ", and what the package index has is " + sums[0]
	if status != http.StatusForbidden || !strings.Contains(string(body), want) {
		t.Errorf("another digest: %d %s", status, body)
	}
}
