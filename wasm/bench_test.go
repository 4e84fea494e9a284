//go:build !windows

package wasm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"rillbox/cache/cachetest"
	"rillbox/deno"
	"rillbox/supervisor/job"
	"rillbox/supervisor/wire"
)

// BenchmarkHello runs each language's hello: `bare` is the language's module in a Deno with
// all permissions and without a wall, which is the floor; `run` a fresh child of the engine,
// and `warm` one that was started ahead. A compiler's result is kept, as for a second run.
func BenchmarkHello(b *testing.B) {
	for _, l := range rows {
		archive, err := txtar.ParseFile(filepath.Join("testdata", string(l.Name), "hello.txtar"))
		if err != nil {
			b.Fatal(err)
		}
		p := job.Program{Language: l.Name, Timeout: time.Minute}
		for _, f := range archive.Files {
			if filepath.Ext(f.Name) != "" && f.Name[:5] == "main." {
				p.Name, p.Code = f.Name, string(f.Data)
			}
		}
		b.Run(string(l.Name)+"/bare", func(b *testing.B) { benchmarkBare(b, l, p) })
		b.Run(string(l.Name)+"/run", func(b *testing.B) { benchmarkRuns(b, p, 0) })
		b.Run(string(l.Name)+"/warm", func(b *testing.B) { benchmarkRuns(b, p, 1) })
	}
}

func benchmarkRuns(b *testing.B, p job.Program, warm int) {
	limits := job.DefaultLimits()
	e, err := New(Options{deno.Options{Cache: cachetest.Open(b), Limits: limits, Warm: warm}})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	run := func() job.Result {
		result, err := e.Run(b.Context(), p, job.Streams{Emit: func(job.Event) {}})
		if err != nil || result.Status != job.Completed {
			b.Fatalf("%v %+v %s", err, result.Error, result.Stderr.Head)
		}
		return result
	}
	run()
	var peak int64
	for b.Loop() {
		if warm > 0 {
			b.StopTimer()
			for e.countWarm() == 0 {
				time.Sleep(5 * time.Millisecond)
			}
			b.StartTimer()
		}
		peak = max(peak, run().PeakMemory)
	}
	b.ReportMetric(float64(peak)/1e6, "MB")
}

func benchmarkBare(b *testing.B, l language, p job.Program) {
	e, err := New(Options{deno.Options{Cache: cachetest.Open(b), Limits: job.DefaultLimits()}})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	rt, err := e.runtime(b.Context(), l, func(job.Event) {})
	if err != nil {
		b.Fatal(err)
	}
	r := e.request(l, p)
	if l.compiler != "" {
		made, failed, err := e.compile(b.Context(), rt, l, p, r, job.Streams{Emit: func(job.Event) {}})
		if err != nil || failed != nil {
			b.Fatal(err, failed)
		}
		r.Compiled = made.module
	}
	if l.calls {
		r.Cell = 1
	}
	var request bytes.Buffer
	if err := wire.WriteRequest(&request, r); err != nil {
		b.Fatal(err)
	}
	argument, err := json.Marshal(start{Parts: rt.parts, Workspace: b.TempDir(), Granted: []string{}, Session: l.calls})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		frames, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			b.Fatal(err)
		}
		args := []string{"run", "-A", "--quiet", "--no-config", "--no-lock", "--no-code-cache"}
		if len(l.flags) > 0 {
			args = append(args, "--v8-flags="+strings.Join(l.flags, ","))
		}
		cmd := exec.Command(rt.deno, append(args, filepath.Join(rt.guest, l.guest+".js"), string(argument))...)
		cmd.Env = []string{"NO_COLOR=1", "HOME=" + b.TempDir()}
		cmd.Stdin, cmd.ExtraFiles = bytes.NewReader(request.Bytes()), []*os.File{frames}
		out, err := cmd.Output()
		_ = frames.Close()
		if err != nil && !l.calls { // whose process waits for another cell
			b.Fatal(fmt.Errorf("%w: %s", err, out))
		}
	}
}
