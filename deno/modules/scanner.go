//go:build !windows

package modules

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"rillbox/deno/permission"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
	"rillbox/supervisor/sandbox"
)

// Each program is parsed in its own process. esbuild is fast, but not made for hostile
// programs: its parser recurses once for each level of nesting (a million brackets
// overflow Go's stack, which ends a process), and its time doubles with each level of
// some types (400 bytes can take forever). Such a program costs its scanner, and the
// run goes on without what a parse would tell.
//
// A scanner is our own binary, started as every child is, with no permissions. It reads
// a request from fd 0 and writes the answer to fd 3, as JSON, and runs none of the
// program. Starting one takes some 10 ms, so a server keeps one ready.

// scanArg, alone, makes our binary a scanner.
const scanArg = "rillbox-scan"

const (
	scanTime   = 5 * time.Second // for one program
	scanStack  = 128 << 20       // bytes; enough for 10,000 levels
	scanMemory = 512 << 20       // bytes
)

type ScanRequest struct {
	Code       string   `json:"code"`
	Extensions []string `json:"extensions"` // with their dots
	// Beside are the texts of files beside the program, by their paths.
	Beside map[string]string `json:"beside,omitempty"`
	// Cell asks for the code as a script, and Transpile for one of plain JavaScript.
	Cell      bool `json:"cell,omitempty"`
	Transpile bool `json:"transpile,omitempty"`
	// JSX is the package that makes a cell's elements of JSX if it imports none that does.
	JSX string `json:"jsx,omitempty"`
}

// key is the same for requests with the same answer.
func (r ScanRequest) key() string {
	return fmt.Sprintf("%q %q\n%s", []any{r.Extensions, r.Cell, r.Transpile, r.JSX}, r.Beside, r.Code)
}

// answer is what a scanner sends back.
func (r ScanRequest) answer() Scanned {
	found := scanAny(r.Code, r.Extensions...)
	if len(r.Beside) > 0 {
		found.Beside = scanFiles(r.Beside)
	}
	if !r.Cell {
		return found
	}
	if i := slices.Index(found.Imports, jsxSource+"/jsx-runtime"); i >= 0 {
		r.JSX = jsxPackage(found.Imports, cmp.Or(r.JSX, "react"))
		found.Imports[i] = r.JSX + "/jsx-runtime"
	}
	found.JSX = r.JSX
	if r.Transpile = r.Transpile || strings.HasSuffix(found.Extension, "x"); r.Transpile || NeedsRewriting(r.Code) {
		found.Script = asScript(r.Code, found.Extension, r.JSX, r.Transpile)
	}
	return found
}

func init() {
	if len(os.Args) == 2 && os.Args[1] == scanArg {
		debug.SetMaxStack(scanStack)
		var r ScanRequest
		err := json.NewDecoder(os.Stdin).Decode(&r)
		if err == nil {
			err = json.NewEncoder(os.NewFile(3, "answer")).Encode(r.answer())
		}
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// Scanners parses programs, and remembers the answers.
type Scanners struct {
	walls permission.Walls
	Pool  *sandbox.Pool[scanner]

	mu   sync.Mutex
	kept map[string]Scanned
}

// The answers for so many programs are remembered, each of at most so many bytes.
const (
	scansKept    = 128
	scanKeptSize = 32 << 10
)

func NewScanners(warm int, walls permission.Walls) *Scanners {
	s := &Scanners{walls: walls, kept: map[string]Scanned{}}
	s.Pool = sandbox.NewPool(warm, func(context.Context) (scanner, error) { return s.start() })
	return s
}

// Of gives the scanFunc of a run that ends with ctx. ended must be called when
// the run has ended; it waits for the end of its scanners.
func (s *Scanners) Of(ctx context.Context) (scan ScanFunc, ended func()) {
	var uses []func()
	return func(r ScanRequest) (Scanned, error) {
			s.mu.Lock()
			found, ok := s.kept[r.key()]
			s.mu.Unlock()
			if ok {
				return found, nil
			}
			hard, used, err := s.ask(ctx, r, &found)
			uses = append(uses, used)
			switch {
			case err != nil:
				return Scanned{}, err
			case hard:
				return Scanned{TooHard: true, Extension: r.Extensions[0], Script: Script{Problem: tooHardToTranspile}}, nil
			}
			s.keep(r.key(), found)
			return found, nil
		}, func() {
			for _, over := range uses {
				over()
			}
		}
}

// ask asks a scanner, one that was started ahead if there is one; if somebody else ends
// it, another one. hard means that the program is too much for a scanner. used waits
// for the scanner's end.
func (s *Scanners) ask(ctx context.Context, request ScanRequest, answer *Scanned) (hard bool, used func(), err error) {
	for again := true; ; again = false {
		one, ok, ended := s.Pool.Take()
		if !ok {
			if one, err = s.start(); err != nil {
				ended()
				return false, func() {}, fmt.Errorf("start a process to parse the program: %w", err)
			}
		}
		used = func() { one.Wait(); ended() }
		hard, err = one.ask(ctx, request, answer)
		if !again || !errors.Is(err, errScannerDied) {
			return hard, used, err
		}
		used()
	}
}

func (s *Scanners) keep(key string, found Scanned) {
	if len(key) > scanKeptSize {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) == scansKept {
		clear(s.kept)
	}
	s.kept[key] = found
}

// scanner is a process that parses one program.
type scanner struct{ *sandbox.Child }

// Discard ends an unused scanner.
func (s scanner) Discard() {
	s.Kill(job.Cancelled, "it is not needed")
	s.Attach(context.Background(), func(job.Event) {})
	s.Wait()
}

// errScannerDied means that a scanner ended without an answer, and not because of the
// program.
var errScannerDied = errors.New("the process that parses programs ended early: run the program again")

// scanFatal is the exit code of a Go process that ends itself: its stack is full.
const scanFatal = 2

// ask sends the scanner its one request and kills it after the answer; the caller waits
// for its end. hard means that the program was too much for it. An error means that ctx
// has ended, or that somebody else ended the scanner.
func (s scanner) ask(ctx context.Context, request ScanRequest, answer *Scanned) (hard bool, err error) {
	s.SetDeadline(scanTime, "parsing the program")
	s.Attach(ctx, func(job.Event) {})
	err = errors.Join(json.NewEncoder(s.Stdin()).Encode(request), json.NewDecoder(s.Frames()).Decode(answer))
	if err == nil {
		s.Kill(job.Cancelled, "its answer has come")
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err == nil {
		return false, nil
	}
	exit := s.Wait()
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case exit.Status == job.TimedOut, exit.Status == job.OutOfMemory, exit.Status == job.Failed && exit.Code == scanFatal:
		return true, nil
	}
	return false, fmt.Errorf("%w (%s, exit status %d %s%s)", errScannerDied, exit.Status, exit.Code, exit.Reason, exit.Stderr)
}

func (s *Scanners) start() (scanner, error) {
	self, err := os.Executable()
	if err != nil {
		return scanner{}, err
	}
	dir, err := sandbox.NewRunDir()
	if err != nil {
		return scanner{}, err
	}
	limits := job.DefaultLimits()
	limits.Memory = scanMemory
	around := permission.Ours(s.walls)
	child, err := sandbox.Start(sandbox.Command{
		Path: around.See(self, permission.ScannerName, launcher.Read|launcher.Execute),
		Args: []string{scanArg},
		Env:  []string{"GOMAXPROCS=2", "GOTRACEBACK=none"},
		Dir:  dir,
		Cwd:  "/",
		Wall: around.Wall(),
	}, limits)
	if err != nil {
		return scanner{}, errors.Join(err, os.RemoveAll(dir))
	}
	return scanner{child}, nil
}
