package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"rillbox/cache/egress"
	"rillbox/pyodide/source"
)

const (
	sourceKind = "source" // of the cache; the key is the archive's SHA-256

	// Built is the Source of a wheel that was built of a source.
	Built = "built"
)

// Builder makes a pure wheel of a source archive of an index, or finds the one that was
// made of it, under a policy; path is that of a blob in the cache, and fresh says that it
// was made now.
// fetch gives the path of the archive, verified; tell hears of progress. An *UnbuiltError
// says why there is no wheel.
type Builder func(ctx context.Context, policy egress.Policy, archive File, fetch func() (path string, err error), tell func(stage string, done, total int64)) (path string, fresh bool, err error)

// UnbuiltError says why no wheel can be built of a source.
type UnbuiltError struct{ Text string }

func (e *UnbuiltError) Error() string { return e.Text }

// Building lets sources be built for the guest until ctx ends or end is called, which
// waits for the build that goes on then; before and after it, none are built.
func (gr *Grant) Building(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	gr.mu.Lock()
	defer gr.mu.Unlock()
	gr.building = ctx
	return func() {
		cancel()
		gr.turn <- struct{}{}
		<-gr.turn
	}
}

// serveBuilt tells of the wheel that a source archive becomes, which is then below file/.
func (g *Gateway) serveBuilt(w http.ResponseWriter, r *http.Request, gr *Grant, sha256, filename string) error {
	e, _, ok := gr.named(sha256, filename)
	if !ok || !e.source {
		return answerf(http.StatusNotFound, "no index page that was asked for names a source archive %.300q with this sha256", filename)
	}
	if err := gr.check(e); err != nil {
		return err
	}
	if g.build == nil {
		return answerf(http.StatusForbidden, "%s is a source archive, and what a build needs is not built itself", filename)
	}
	wheel, err := g.built(r.Context(), gr, e)
	if unbuilt, ok := errors.AsType[*UnbuiltError](err); ok {
		return answerf(http.StatusUnprocessableEntity, "%s", unbuilt.Text)
	}
	if err != nil {
		return err
	}
	gr.mu.Lock()
	gr.plan[fileKey{wheel.SHA256, wheel.Filename}] = wheel
	gr.mu.Unlock()
	body, err := json.Marshal(map[string]string{
		"filename": wheel.Filename, "sha256": wheel.SHA256,
		"url": gr.BaseURL() + "file/" + wheel.SHA256 + "/" + url.PathEscape(wheel.Filename),
	})
	if err != nil {
		return err
	}
	return send(w, r, "application/json", int64(len(body)), bytes.NewReader(body))
}

// built has the wheel of a source archive made or found: one at a time for each guest,
// and for as long as its program or cell may wait for it.
func (g *Gateway) built(ctx context.Context, gr *Grant, e entry) (wheel entry, err error) {
	gr.mu.Lock()
	allowed := gr.building
	gr.mu.Unlock()
	if allowed == nil || allowed.Err() != nil {
		return wheel, answerf(http.StatusForbidden, "sources are built for a program or cell that runs")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(allowed, cancel)()
	select {
	case gr.turn <- struct{}{}:
		defer func() { <-gr.turn }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return wheel, context.Cause(ctx)
	}
	if allowed.Err() != nil { // which ctx hears of a moment later
		return wheel, context.Cause(allowed)
	}
	path, fresh, err := g.build(ctx, gr.policy, e.File, func() (string, error) {
		path, _, err := g.checkedBlob(ctx, gr, sourceKind, source.MaxArchive, e)
		return path, err
	}, gr.tell)
	if err != nil {
		return wheel, err
	}
	wheel = entry{File: e.File, fresh: fresh}
	wheel.Filename, wheel.SHA256, wheel.Source = source.WheelName(e.Name, e.Version), filepath.Base(path), Built
	wheel.URL += "#sha256=" + e.SHA256
	f, err := os.Open(path)
	if err != nil {
		return wheel, err
	}
	defer f.Close()
	_, err = g.cache.Put(ctx, WheelKind, wheel.SHA256, f) // an install plan will name it by its digest
	return wheel, err
}
