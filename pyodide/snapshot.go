//go:build !windows

package pyodide

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	gort "runtime"
	"slices"

	"rillbox/cache"
	"rillbox/deno/binary"
	"rillbox/supervisor/job"
)

const snapshotKind = "snapshot"

// takeSnapshot finds the memory of a started Python in the cache by a key, or makes it:
// about three seconds once, in place of the same before every run. making is
// called when it has to be made.
func (e *Engine) takeSnapshot(ctx context.Context, rt *runtime, key string, making func()) (err error) {
	rt.snapshot, _, err = e.o.Cache.GetOrPut(ctx, snapshotKind, key, func(ctx context.Context, w io.Writer) error {
		making()
		o := childOptions{module: "snapshot.js", files: []file{
			{rt.pyodide.Dir, "/rillbox/pyodide"}, {rt.pyodide.Micropip, "/rillbox/" + filepath.Base(rt.pyodide.Micropip)},
		}}
		return e.produce(ctx, rt, o, e.o.Limits.InstallTimeout, "making the snapshot of Python", w)
	})
	if err != nil {
		return fmt.Errorf("make the snapshot of Python: %w", err)
	}
	info, err := os.Stat(rt.snapshot)
	if err != nil {
		return fmt.Errorf("look at the snapshot of Python: %w", err)
	}
	rt.heap = info.Size() // the rest of Python's memory is zero
	return nil
}

// errNotLoaded is wrapped by the errors of workers that ended before they were
// ready.
var errNotLoaded = errors.New("the worker could not load Python")

// renew gives a runtime with another snapshot in place of one whose snapshot was
// not loaded, once in the life of an Engine; false when there is none. The one that others may well load stays, and
// all who can't load it have the other one in common.
func (e *Engine) renew(ctx context.Context, rt *runtime, emit func(job.Event)) (*runtime, bool) {
	e.renewing.Lock()
	defer e.renewing.Unlock()
	e.mu.Lock()
	now := e.runtime
	e.mu.Unlock()
	if now != rt || e.renewed {
		return now, now != rt && now != nil
	}
	e.renewed = true
	e.o.Log.Warn("the snapshot of Python was not loaded and another one is taken")
	fresh := *rt
	err := e.takeSnapshot(ctx, &fresh, rt.key+"/again", func() { emit(job.Event{Kind: job.Stage, Text: "preparing Python"}) })
	if err != nil {
		e.o.Log.Warn("the snapshot of Python can't be made", "error", err)
		return nil, false
	}
	e.mu.Lock()
	e.runtime = &fresh
	e.mu.Unlock()
	return &fresh, true
}

// snapshotKey tells snapshots of other versions apart, and those of an
// operator's own Pyodide by its bytes.
func snapshotKey(pyodide Distribution) (string, error) {
	key := fmt.Sprintf("%s/%s/pyodide-%s/deno-%s/%s", gort.GOOS, gort.GOARCH, Version, binary.Version, sourcesDigest())
	if !pyodide.Operator {
		return key, nil
	}
	parts := []string{}
	for _, file := range append(slices.Sorted(maps.Keys(core)), pyodide.Micropip) {
		if !filepath.IsAbs(file) {
			file = filepath.Join(pyodide.Dir, file)
		}
		sum, _, err := cache.HashFile(file)
		if err != nil {
			return "", fmt.Errorf("look at the operator's Pyodide: %w", err)
		}
		parts = append(parts, sum)
	}
	return key + "/" + digest(parts...), nil
}
