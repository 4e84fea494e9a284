//go:build !windows

package wasm

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"rillbox/deno/permission"
	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
	"rillbox/supervisor/wire"
)

// compiled is what a compiler made of a program.
type compiled struct {
	module []byte
	words  []byte // what the compiler said: warnings
	took   time.Duration
}

const (
	compiledKind = "wasm" // the cache's
	moduleName   = "module"
	wordsName    = "words" // what the compiler said beside
	// maxModule is how large a module may be, in bytes: a request holds it in base64.
	maxModule = 64 << 20
	// maxSources bounds what a compiler gets of a workspace, in bytes, and mostSources in files.
	maxSources  = 16 << 20
	mostSources = 10_000
)

// errCompile says that a compiler refused a program.
var errCompile = errors.New("the program does not compile")

// compile makes a module of a program, or takes the one that was made of the same files
// before. failed is the result of a program that does not compile.
func (e *Engine) compile(ctx context.Context, rt runtime, l language, p job.Program, r request, streams job.Streams) (made compiled, failed *job.Result, err error) {
	began := time.Now()
	if r.Files, err = withSources(r.Files, l, p.Workspace); err != nil {
		return made, nil, err
	}
	r = request{Code: r.Code, File: r.File, Files: r.Files} // all that a compiler gets is in the key
	text, err := json.Marshal(r)
	if err != nil {
		return made, nil, err
	}
	key := sha256.New()
	fmt.Fprintln(key, sourcesDigest(), l.Name, e.o.Limits.Memory)
	for _, name := range l.parts {
		fmt.Fprintln(key, parts[name].key(name))
	}
	if l.toolchain {
		fmt.Fprintln(key, filepath.Base(rt.parts[goPart]), goVersion(rt.parts[goPart]))
	}
	_, _ = key.Write(text)
	var result job.Result
	dir, _, err := e.o.Cache.Tree(ctx, compiledKind, hex.EncodeToString(key.Sum(nil)), func(ctx context.Context, dir string) error {
		streams.Emit(job.Event{Kind: job.Stage, Text: "compiling"})
		module, words := &limitedBuffer{left: maxModule}, &bytes.Buffer{}
		result, err = e.compileIn(ctx, rt, l, p, r, module, words, streams)
		switch {
		case err != nil:
			return err
		case result.Status != job.Completed:
			return errCompile
		}
		return errors.Join(
			os.WriteFile(filepath.Join(dir, moduleName), module.Bytes(), 0o600),
			os.WriteFile(filepath.Join(dir, wordsName), words.Bytes(), 0o600),
		)
	})
	switch {
	case errors.Is(err, errCompile):
		result.Installing = time.Since(began)
		return made, &result, nil
	case ctx.Err() != nil:
		cancelled := job.CancelledBefore("")
		return made, &cancelled, nil
	case err != nil:
		return made, nil, err
	}
	made.words, err = os.ReadFile(filepath.Join(dir, wordsName))
	if err == nil {
		made.module, err = os.ReadFile(filepath.Join(dir, moduleName))
	}
	if len(made.words) > 0 {
		streams.Emit(job.Event{Kind: job.Stderr, Data: made.words})
	}
	made.took = time.Since(began)
	return made, nil, err
}

// compileIn runs the compiler in a child of its own, which sees nothing but what it is
// given, and writes the module in place of frames.
func (e *Engine) compileIn(ctx context.Context, rt runtime, l language, p job.Program, r request, module, words io.Writer, streams job.Streams) (result job.Result, err error) {
	exit, err := e.runCompiler(ctx, rt, l, r, cmp.Or(p.Timeout, e.o.Limits.Timeout), module)
	if exit.Status == "" { // it did not start
		return result, err
	}
	result = wire.Outcome{Quiet: true}.Into(exit)
	if _, err := words.Write(exit.Stderr.Head); err != nil {
		return result, err
	}
	if result.Status != job.Completed {
		if result.Status == job.Failed && result.Error == nil {
			result.Error = &job.GuestError{Name: "CompileError", Message: firstError(exit.Stderr.String())}
		}
		for _, part := range [][]byte{exit.Stderr.Head, exit.Stderr.Tail} {
			if len(part) > 0 {
				streams.Emit(job.Event{Kind: job.Stderr, Data: part})
			}
		}
	}
	return result, nil
}

// runCompiler has a compiler answer one request, within a time, in a child of its own; what
// it makes goes to module. A module that can't be taken ends it, and is the error.
func (e *Engine) runCompiler(ctx context.Context, rt runtime, l language, request any, within time.Duration, module io.Writer) (sandbox.Exit, error) {
	child, err := e.startChild(rt, childOptions{module: l.compiler, flags: l.compilerFlags, heap: startMemory, permissions: permission.Permissions{}, bare: true})
	if err != nil {
		return sandbox.Exit{}, err
	}
	child.Attach(ctx, func(job.Event) {})
	child.SetDeadline(within, "the compiler")
	go func() {
		to := child.Stdin()
		_ = wire.WriteRequest(to, request) // of a child that has ended, Wait tells
		_ = to.Close()
	}()
	_, err = io.Copy(module, child.Frames())
	if err != nil {
		child.Kill(job.Failed, err.Error())
	}
	return child.Wait(), err
}

// placed matches a line of a compiler's that tells where something is: "./main.go:4:2: …".
var placed = regexp.MustCompile(`^\S+:\d+:`)

// firstError is the first line of a compiler's that tells of an error.
func firstError(words string) string {
	for line := range strings.Lines(words) {
		if strings.Contains(line, "error") || placed.MatchString(line) && !strings.Contains(line, "warning") {
			return strings.TrimSpace(line)
		}
	}
	return errCompile.Error()
}

// withSources adds what a compiler reads of a workspace to files.
func withSources(files map[string][]byte, l language, workspace string) (map[string][]byte, error) {
	if workspace == "" {
		return files, nil
	}
	all, left := map[string][]byte{}, int64(maxSources)
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // what can't be read is not there
		case d.IsDir() && name != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.Type().IsRegular() || !slices.Contains(l.sources, path.Ext(name)):
			return nil
		}
		content, err := readSource(root, name, left+1)
		if err != nil {
			return nil
		}
		if left -= int64(len(content)); left < 0 || len(all) == mostSources {
			return job.Refuse("the sources in the workspace have more than %d MiB, or are more than %d files: a program has its own directory, with its sources alone", maxSources>>20, mostSources)
		}
		all[path.Join(workspaceName, name)] = content
		return nil
	})
	for name, content := range files {
		all[name] = content
	}
	return all, err
}

// readSource reads most bytes of a file at the most: it may have a size beyond all memory.
// What is no file by now, as programs work there meanwhile, is not waited for.
func readSource(root *os.Root, name string, most int64) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fs.ErrInvalid
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// limitedBuffer holds what is written to it, up to a number of bytes.
type limitedBuffer struct {
	bytes.Buffer
	left int
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, fmt.Errorf("the compiled module has more than %d MiB", maxModule>>20)
	}
	return b.Buffer.Write(p)
}
