//go:build !windows

package modules

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rillbox/deno/permission"
	"rillbox/supervisor/job"
	"rillbox/supervisor/sandbox"
)

// scanApart parses a program in a scanner of its own.
func scanApart(ctx context.Context, code string, extensions ...string) (Scanned, error) {
	scan, ended := NewScanners(0, permission.Walls{}).Of(ctx)
	defer ended()
	return scan(ScanRequest{Code: code, Extensions: extensions})
}

func TestScannersSeeWhatAScanSees(t *testing.T) {
	for code, extension := range map[string]string{
		`import a from "a"; require("b"); export default 1`: ".ts",
		`module.exports = require("c")`:                     ".js",
		`const x: number = 1`:                               ".js",
		`<a/>`:                                              ".tsx",
		"\u2028 \xff \x00":                                  ".js",
	} {
		got, err := scanApart(t.Context(), code, extension)
		if want := scanAny(strings.ToValidUTF8(code, "\ufffd"), extension); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: have %+v %v, want %+v", code, got, err, want)
		}
	}
}

// What a scanner found is remembered, a scanner is not.
func TestScannersAreUsedOnce(t *testing.T) {
	s := NewScanners(1, permission.Walls{})
	defer s.Pool.Close()
	s.Pool.Warm()
	ahead := s.Pool.Idle()
	scan, ended := s.Of(t.Context())
	for _, test := range []struct{ code, extension string }{
		{`import "a"`, ".js"},
		{`const e = <b/>`, ".jsx"},
		{`const x: number = 1`, ".js"},
		{`import "a"`, ".js"},
	} {
		got, err := scan(ScanRequest{Code: test.code, Extensions: []string{".js", ".jsx"}})
		if want := scanAny(test.code, ".js", ".jsx"); err != nil || !reflect.DeepEqual(got, want) || got.Extension != test.extension {
			t.Errorf("%q: have %+v %v, want %+v as %s", test.code, got, err, want, test.extension)
		}
	}
	ended()
	if len(ahead) != 1 || len(s.kept) != 3 {
		t.Fatalf("%d were started ahead, %d programs are remembered", len(ahead), len(s.kept))
	}
	<-ahead[0].Ended()
	for i := range 2 * scansKept {
		s.keep(strconv.Itoa(i), Scanned{})
	}
	s.keep(strings.Repeat("x", scanKeptSize+1), Scanned{})
	if n := len(s.kept); n == 0 || n > scansKept {
		t.Errorf("%d programs are remembered, at most %d may be", n, scansKept)
	}
}

func TestHostileProgramsCostAScanner(t *testing.T) {
	for _, nest := range []string{"(", "[", "{", "!", "a=>", "`${", "<a>", "a:", "class a{["} {
		for _, extension := range []string{".js", ".tsx"} {
			if nest == "<a>" {
				extension = ".tsx"
			}
			if got, err := scanApart(t.Context(), strings.Repeat(nest, 1<<20/len(nest)), extension); err != nil || !got.TooHard {
				t.Errorf("%q, a million times: %.200v %v", nest, got, err)
			}
		}
	}
	// Each level doubles the time that esbuild takes.
	start := time.Now()
	if got, err := scanApart(t.Context(), "type T = A extends "+strings.Repeat("(infer U extends ", 60), ".ts"); err != nil || !got.TooHard {
		t.Errorf("a type: %.200v %v after %v", got, err, time.Since(start))
	}
	if took := time.Since(start); took > scanTime+5*time.Second {
		t.Errorf("a type took %v", took)
	}
	if got, err := scanApart(t.Context(), `import "x"`, ".js"); err != nil || len(got.Imports) != 1 {
		t.Errorf("the next one: %+v %v", got, err)
	}
}

// dying starts a scanner that ends in its own way when it is asked.
func dying(end string) (scanner, error) {
	dir, err := sandbox.NewRunDir()
	if err != nil {
		return scanner{}, err
	}
	child, err := sandbox.Start(sandbox.Command{
		Path: "/bin/sh", Args: []string{"-c", "read request; " + end}, Dir: dir,
	}, job.DefaultLimits())
	return scanner{child}, err
}

// TestAKilledScannerIsReplacedOnce: what was killed says nothing of the program, and
// the second death is an error of ours.
func TestAKilledScannerIsReplacedOnce(t *testing.T) {
	for _, end := range []string{"kill -9 $$", "exit 1", "exit 0"} {
		for deaths := range 3 {
			s := NewScanners(0, permission.Walls{})
			var started atomic.Int32
			s.Pool = sandbox.NewPool(deaths, func(context.Context) (scanner, error) {
				if int(started.Add(1)) > deaths { // in the place of one that was taken
					return scanner{}, errors.New("no more of them")
				}
				return dying(end)
			})
			for range deaths { // each that finds none makes the pool larger
				_, _, ended := s.Pool.Take()
				ended()
			}
			if waiting := len(s.Pool.Idle()); waiting != deaths {
				t.Fatalf("%d scanners wait, want %d", waiting, deaths)
			}
			scan, ended := s.Of(t.Context())
			found, err := scan(ScanRequest{Code: `import "a"`, Extensions: []string{".js"}})
			switch {
			case deaths < 2 && (err != nil || len(found.Imports) != 1 || found.TooHard):
				t.Errorf("%s, %d times: %+v %v", end, deaths, found, err)
			case deaths == 2 && !errors.Is(err, errScannerDied):
				t.Errorf("%s, twice: %+v %v", end, found, err)
			}
			ended()
			s.Pool.Close()
		}
	}
}

func TestAScanEndsWithItsRun(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := scanApart(ctx, strings.Repeat("A<", 1<<19), ".ts") // takes minutes
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 30*time.Second {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
}

func BenchmarkScan(b *testing.B) {
	for b.Loop() {
		if _, err := scanApart(b.Context(), `import a from "a"`, ".ts"); err != nil {
			b.Fatal(err)
		}
	}
}
