//go:build !windows

package pyodide

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"rillbox/cache"
	"rillbox/deno"
	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
)

// A process that ends with its run, as `rillbox run` does, leaves the images that
// are still to be made to another one: our own binary, executed again under
// another name, apart from the terminal. It runs from this package's init, makes
// them and ends.
const detachedName = "rillbox-images"

// detachedTime bounds the life of that process.
const detachedTime = 15 * time.Minute

// detachedImages is what such a process is told on its standard input.
type detachedImages struct {
	CacheDir string
	Options  Options // but for the cache
	Files    []planFile
}

func init() {
	if os.Args[0] == detachedName {
		if err := makeDetachedImages(os.Stdin); err != nil {
			os.Exit(1) // there is nobody to tell: the next run that lacks an image says more
		}
		os.Exit(0)
	}
}

// leaveImages has another process make what images are left to be made; it is nil
// when none are.
func (e *Engine) leaveImages() (*os.Process, error) {
	e.images.mu.Lock()
	files := e.images.left
	e.images.left = nil
	e.images.mu.Unlock()
	if len(files) == 0 {
		return nil, nil
	}
	text, err := json.Marshal(detachedImages{e.o.Cache.Dir(), Options{
		Path:    e.o.Path,
		Options: deno.Options{DenoPath: e.o.DenoPath, Limits: e.o.Limits, Wall: e.o.Wall, WithoutSecondWall: e.o.WithoutSecondWall},
	}, files})
	if err != nil {
		return nil, fmt.Errorf("encode the images that are left: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	process := exec.Cmd{
		Path: self, Args: []string{detachedName}, Dir: "/", Stdin: r,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	err = process.Start()
	_ = r.Close()
	if err != nil {
		return nil, fmt.Errorf("start a process for the images that are left: %w", err)
	}
	_, err = w.Write(text)
	return process.Process, err
}

func makeDetachedImages(input io.Reader) error {
	var left detachedImages
	if err := json.NewDecoder(input).Decode(&left); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), detachedTime)
	defer cancel()
	c, err := cache.Open(left.CacheDir, cache.Options{Offline: true})
	if err != nil {
		return err
	}
	defer c.Close()
	// Another such process is at work: what it does not make is left to the next.
	alone, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	unlock, err := c.Lock(alone, detachedName)
	if err != nil {
		return err
	}
	defer unlock()
	left.Options.Cache = c
	e, err := New(left.Options)
	if err != nil {
		return err
	}
	defer func() {
		e.Close()
		_ = sandbox.RemoveServerDir() // the next start removes what is left
	}()
	rt, err := e.ready(ctx, func(job.Event) {})
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range left.Files {
		errs = append(errs, e.makeImage(ctx, rt, file))
	}
	return errors.Join(errs...)
}
