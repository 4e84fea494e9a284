//go:build !windows

package deno

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"rillbox/supervisor"
	"rillbox/supervisor/launcher"
)

// Each program is parsed in a process of its own. esbuild is fast and made for
// people's own programs: its parser recurses once for each level of nesting (a
// program of a million brackets overflows Go's stack, which ends a process), and
// its time doubles with each level of some types (400 bytes can take for ever).
// Such a program costs its scanner, and the run goes on without what it would
// have told.
//
// A scanner is our own binary again, started as every child is, with no
// permission to anything. The request comes on its fd 0, the answer goes to its
// fd 3, as JSON. It runs none of the program. Starting one takes some 10 ms.

// scanArg, alone, makes our binary a scanner.
const scanArg = "rillbox-scan"

const (
	scanTime   = 5 * time.Second // for one program
	scanStack  = 128 << 20       // bytes; enough for 10,000 levels
	scanMemory = 512 << 20       // bytes
)

type scanRequest struct {
	Code      string `json:"code"`
	Extension string `json:"extension"` // with its dot
}

func init() {
	if len(os.Args) == 2 && os.Args[1] == scanArg {
		debug.SetMaxStack(scanStack)
		var r scanRequest
		err := json.NewDecoder(os.Stdin).Decode(&r)
		if err == nil {
			err = json.NewEncoder(os.NewFile(3, "answer")).Encode(scan(r.Code, loaders[r.Extension]))
		}
		if err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// scanApart parses a program in a scanner. The error means that no scanner
// could be started or that ctx ended.
func scanApart(ctx context.Context, code, extension string) (scanned, error) {
	child, err := startScanner()
	if err != nil {
		return scanned{}, fmt.Errorf("start a process to parse the program: %w", err)
	}
	child.SetDeadline(scanTime, "parsing the program")
	child.Attach(ctx, func(supervisor.Event) {})
	var found scanned
	err = errors.Join(json.NewEncoder(child.Stdin()).Encode(scanRequest{code, extension}),
		json.NewDecoder(child.Frames()).Decode(&found))
	child.Kill(supervisor.Cancelled, "its answer has come")
	child.Wait()
	if ctx.Err() != nil {
		return scanned{}, context.Cause(ctx)
	}
	if err != nil {
		return scanned{TooHard: true}, nil
	}
	return found, nil
}

func startScanner() (*supervisor.Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := supervisor.NewRunDir()
	if err != nil {
		return nil, err
	}
	limits := supervisor.DefaultLimits()
	limits.Memory = scanMemory
	child, err := supervisor.Start(supervisor.Command{
		Path: self,
		Args: []string{scanArg},
		Env:  []string{"GOMAXPROCS=2", "GOTRACEBACK=none"},
		Dir:  dir,
		Wall: &launcher.Wall{ReadOnly: []string{self}},
	}, limits)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return child, nil
}
