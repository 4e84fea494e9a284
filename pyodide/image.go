//go:build !windows

package pyodide

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"sync"
	"time"

	"rillbox/cache"
)

// An image is what a wheel unpacks to, with its modules compiled, in one file
// (see guest/wheel.ts). A worker mounts it in a millisecond, where unpacking the wheel
// and compiling what is imported takes one or more seconds.
//
// It is made behind the scenes after a run that had to do without: by a child
// that has this one wheel and no network, and in which neither the wheel's code
// nor any guest's runs. It depends on the wheel's bytes, Pyodide and our sources
// alone, so that all programs share it, and a guest has no say in it.
const imageKind = "image"

// imageTime bounds the making of one image: 3 s for 600 modules, but others
// come first.
const imageTime = 15 * time.Minute

// imageKey describes all that decides what a file's image holds.
func (rt *runtime) imageKey(file planFile) string {
	return fmt.Sprintf("%s/%s/%s/%s", rt.key, file.Dir, file.SHA256, file.Filename)
}

// lend gives the worker the images of a plan's files, and returns the files that
// have none.
func (r *run) lend(p *plan) (lacking []planFile) {
	var lookups sync.WaitGroup
	for i := range p.Files {
		file := &p.Files[i]
		lookups.Go(func() { // the first in a process hashes the image
			file.Image = ""
			image, err := r.e.o.Cache.Get(imageKind, r.worker.rt.imageKey(*file))
			if err == nil {
				image, err = r.worker.images.Add(image)
			}
			if err == nil {
				file.Image = path.Join(r.worker.loan, path.Base(image))
			} else if !errors.Is(err, cache.ErrMiss) {
				r.e.o.Log.Warn("the image of a Python package is not used", "file", file.Filename, "error", err)
			}
		})
	}
	lookups.Wait()
	for i := range p.Files {
		file := &p.Files[i]
		if file.Image != "" && r.worker.grant.Lent(file.File) != nil {
			file.Image = "" // the gateway says why
		}
		if file.Image == "" {
			lacking = append(lacking, *file)
		}
	}
	return lacking
}

// images are those that are missing.
type images struct {
	mu     sync.Mutex
	known  map[string]bool // keys that were asked for
	left   []planFile      // to a detached process
	making sync.Mutex      // held while some are made
}

// makeImages makes the images of files behind the scenes, one at a time, and each at
// most once in the life of this process.
func (e *Engine) makeImages(rt *runtime, files []planFile) {
	e.images.mu.Lock()
	defer e.images.mu.Unlock()
	var missing []planFile
	for _, file := range files {
		if key := rt.imageKey(file); !e.images.known[key] {
			e.images.known[key] = true
			missing = append(missing, file)
		}
	}
	if e.o.LeaveImages {
		e.images.left = append(e.images.left, missing...)
	} else if len(missing) > 0 {
		e.jobs.Go(func() {
			e.images.making.Lock()
			defer e.images.making.Unlock()
			for _, file := range missing {
				err := e.makeImage(e.ctx, rt, file)
				if e.ctx.Err() != nil {
					return
				}
				if err != nil {
					e.o.Log.Warn("the image of a Python package is not made", "file", file.Filename, "error", err)
				}
			}
		})
	}
}

// makeImage makes the image of a file if no process has made it yet.
func (e *Engine) makeImage(ctx context.Context, rt *runtime, f planFile) error {
	wheel, err := rt.gateway.Cached(f.File)
	if err != nil {
		return err
	}
	_, _, err = e.o.Cache.GetOrPut(ctx, imageKind, rt.imageKey(f), func(ctx context.Context, w io.Writer) error {
		o := childOptions{
			module: "image.js", files: append(rt.python(), file{wheel, "/rillbox/wheel"}),
			words: []string{f.Filename, f.Dir}, background: true,
		}
		return e.produce(ctx, rt, o, imageTime, "making the image of "+f.Filename, w)
	})
	return err
}
