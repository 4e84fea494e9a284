//go:build !windows

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"rillbox/cmd/rillbox/terminal"
)

// settleTime is how long an editor may take to write what belongs together.
const settleTime = 50 * time.Millisecond

// errChanged ends a run whose program has changed.
var errChanged = errors.New("the program has changed")

// watch runs the program in a file, and again whenever that, one of its modules or a
// manifest changes, until ctx ends. read reads the program as it is then.
func (a *app) watch(ctx context.Context, e *engines, n named, f *runFlags, read func() (named, error)) error {
	if n.file == "" {
		return usageError{errors.New("--watch looks at a FILE, and the program is in none")}
	}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("cannot watch the program: %w", err)
	}
	defer watcher.Close()
	for {
		files := map[string]bool{}
		for _, file := range n.parts() {
			if err := watcher.Add(filepath.Dir(file)); err != nil { // a file may be replaced
				return fmt.Errorf("cannot watch the program: %w", err)
			}
			files[file] = true
		}
		running, stop := context.WithCancelCause(ctx)
		ended := make(chan error, 1)
		go func() { ended <- a.runOnce(running, e, n, f) }()
		changed := a.awaitChange(ctx, watcher, files, ended)
		stop(errChanged)
		if <-ended; !changed {
			return exitStatus(statusCancelled)
		}
		for {
			if n, err = read(); err == nil {
				break
			}
			terminal.PrintError(err) // the next change may mend it
			if !a.awaitChange(ctx, watcher, files, nil) {
				return exitStatus(statusCancelled)
			}
		}
	}
}

// awaitChange waits until one of the files changes, or ctx ends: then it is false. The
// end of a run is told, and left in ended.
func (a *app) awaitChange(ctx context.Context, watcher *fsnotify.Watcher, files map[string]bool, ended chan error) bool {
	var settled <-chan time.Time
	running := ended
	for {
		select {
		case <-ctx.Done():
			return false
		case <-settled:
			return true
		case event := <-watcher.Events:
			if files[event.Name] && !event.Has(fsnotify.Chmod) {
				settled = time.After(settleTime)
			}
		case <-watcher.Errors: // events were lost, perhaps of our files
			settled = time.After(settleTime)
		case err := <-running:
			var exit exitStatus
			if err != nil && !errors.As(err, &exit) {
				terminal.PrintError(err)
			}
			ended <- err
			running = nil
			if !a.quiet {
				fmt.Fprintln(os.Stderr, "rillbox: waiting for a change of the program (Ctrl-C ends)")
			}
		}
	}
}

// parts are the absolute paths of the program's file, of the modules that it may import
// from beside it, and of its manifests.
func (n named) parts() []string {
	path, err := n.place()
	if err != nil {
		return nil // running it says why
	}
	parts := []string{path}
	modules, _ := n.modules(path)
	for name := range modules {
		parts = append(parts, filepath.Join(filepath.Dir(path), filepath.FromSlash(name)))
	}
	_, _, manifests, _ := n.manifest() // running it says what is wrong with them
	for _, path := range manifests {
		if info, err := os.Stat(filepath.Dir(path)); err == nil && info.IsDir() {
			parts = append(parts, path)
		}
	}
	return parts
}
