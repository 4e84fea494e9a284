//go:build !windows

package pyodide

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"rillbox/cache"
)

// An image is what a wheel unpacks to, with its modules compiled, in one file
// (see guest/mount.ts). A worker mounts it in a millisecond, where unpacking the wheel
// and compiling what is imported takes one or more seconds.
//
// It is made behind the scenes after a run that had to do without: by a child
// that has this one wheel and no network, and in which neither the wheel's code
// nor any guest's runs. It depends on the wheel's bytes, Pyodide and our sources
// alone, so that all programs share it, and a guest has no say in it.
const imageKind = "image"

const (
	maxIndex = 64 << 20 // bytes; a wheel of 10,000 files has some 400,000
	maxImage = 4 << 30  // bytes; a child's Python has no more memory
	// imageTime bounds the making of one image: 3 s for 600 modules, but others
	// come first.
	imageTime = 15 * time.Minute
)

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
		return e.produce(ctx, rt, o, imageTime, "making the image of "+f.Filename, func(image io.Reader) error { return copyImage(w, image) })
	})
	return err
}

// imageIndex is what an image begins with; guest/mount.ts has the other end.
type imageIndex struct {
	Info        string           `json:"info"` // the dist-info directory; may be empty
	Directories []imageDirectory `json:"directories"`
}

type imageDirectory struct {
	Path  string   `json:"path"`
	Names []string `json:"names"` // of its files
	Sizes []int64  `json:"sizes"` // of these, in bytes
}

// copyImage copies an image that is as it should be: the child that made it is
// ours, but has read a stranger's wheel.
func copyImage(w io.Writer, image io.Reader) error {
	var head [4]byte
	if _, err := io.ReadFull(image, head[:]); err != nil {
		return fmt.Errorf("read the length of its index: %w", err)
	}
	length := binary.LittleEndian.Uint32(head[:])
	if length > maxIndex {
		return fmt.Errorf("its index has %d bytes, %d are allowed", length, maxIndex)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(image, text); err != nil {
		return fmt.Errorf("read its index: %w", err)
	}
	var index imageIndex
	if err := json.Unmarshal(text, &index); err != nil {
		return fmt.Errorf("read its index: %w", err)
	}
	size, err := index.size()
	if err != nil {
		return fmt.Errorf("read its index: %w", err)
	}
	if _, err := w.Write(append(head[:], text...)); err != nil {
		return err
	}
	if _, err := io.CopyN(w, image, size); err != nil {
		return fmt.Errorf("copy its %d bytes of files: %w", size, err)
	}
	if n, _ := image.Read(head[:]); n > 0 {
		return errors.New("it is longer than its index says")
	}
	return nil
}

// size checks an index and returns how many bytes of files follow it.
func (x imageIndex) size() (total int64, err error) {
	if x.Info != "" && !isPath(x.Info) {
		return 0, fmt.Errorf("%.300q is no directory of packages", x.Info)
	}
	for _, d := range x.Directories {
		if !isPath(d.Path) || len(d.Names) != len(d.Sizes) {
			return 0, fmt.Errorf("%d names and %d sizes in %.300q", len(d.Names), len(d.Sizes), d.Path)
		}
		for i, name := range d.Names {
			if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
				return 0, fmt.Errorf("%.300q is no file name", name)
			}
			if d.Sizes[i] < 0 || d.Sizes[i] > maxImage-total {
				return 0, fmt.Errorf("%.300q has %d bytes", name, d.Sizes[i])
			}
			total += d.Sizes[i]
		}
	}
	return total, nil
}

// isPath says whether a directory is one that an installation may make.
func isPath(dir string) bool {
	top, _, _ := strings.Cut(strings.TrimPrefix(dir, "/"), "/")
	return path.IsAbs(dir) && path.Clean(dir) == dir && !slices.Contains([]string{"dev", "proc", "tmp"}, top)
}
