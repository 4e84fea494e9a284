//go:build !windows

package wasm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"rillbox/supervisor/job"
)

// makeTime is how long a compiler may take for what it makes once.
const makeTime = 2 * time.Minute

// made gives the directory of what a language's compiler makes once for all programs, such
// as headers that are read already. The child that makes it never sees a program.
func (e *Engine) made(ctx context.Context, rt runtime, l language, emit func(job.Event)) (string, error) {
	key := []string{sourcesDigest()}
	for _, name := range l.parts {
		key = append(key, parts[name].key(name))
	}
	dir, _, err := e.o.Cache.Tree(ctx, compiledKind, strings.Join(append(key, l.makes...), " "), func(ctx context.Context, dir string) error {
		emit(job.Event{Kind: job.Stage, Text: "preparing the compiler of " + l.Title})
		for _, name := range l.makes {
			if err := e.makeFile(ctx, rt, l, name, filepath.Join(dir, name)); err != nil {
				return err
			}
		}
		return nil
	})
	return dir, err
}

func (e *Engine) makeFile(ctx context.Context, rt runtime, l language, name, path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	exit, err := e.runCompiler(ctx, rt, l, map[string]string{"make": name}, makeTime, file)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	case exit.Status != job.Completed:
		return fmt.Errorf("it ended as %s (exit status %d, %s): %s", exit.Status, exit.Code, exit.Reason, exit.Stderr)
	}
	return file.Close()
}
