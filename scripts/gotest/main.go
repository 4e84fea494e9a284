// Command gotest runs `go test -json` with the arguments that it is given,
// prints the output of what fails in full and each skip with its reason, and
// ends with the line "N passed, N failed, N skipped".
//
// A test with subtests is not counted beside them. A package that fails without
// a failing test (it does not build, or it panicked) counts as one failure.
//
// The seconds that each test at the top level took are appended to the file that
// GOTEST_TIMES names, if it is set. A test that runs beside others took their
// time too.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action     string
	Package    string
	ImportPath string // of a package that does not build
	Test       string
	Elapsed    float64
	Output     string
}

type name struct{ pkg, test string }

// tally is what is known of the tests so far.
type tally struct {
	out     io.Writer
	output  map[name][]string
	parents map[name]bool // tests that have subtests
	verdict map[name]string
	times   strings.Builder // "SECONDS PACKAGE TEST", a line each
}

func main() {
	cmd := exec.Command("go", append([]string{"test", "-json"}, os.Args[1:]...)...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest: cannot run go test:", err)
		os.Exit(2)
	}
	t := &tally{out: os.Stdout, output: map[name][]string{}, parents: map[name]bool{}, verdict: map[name]string{}}
	readErr := t.read(pipe)
	waitErr := cmd.Wait()
	passed, failed, skipped := t.count()
	if readErr != nil {
		fmt.Fprintln(os.Stderr, "gotest: cannot read what go test says:", readErr)
		failed++
	}
	if waitErr != nil && failed == 0 {
		fmt.Fprintln(os.Stderr, "gotest: go test failed, though no test did:", waitErr)
		failed++
	}
	if file := os.Getenv("GOTEST_TIMES"); file != "" {
		if err := t.keepTimes(file); err != nil {
			fmt.Fprintln(os.Stderr, "gotest: cannot keep the times:", err)
			failed++
		}
	}
	fmt.Printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if failed > 0 {
		os.Exit(1)
	}
}

func (t *tally) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprintf(t.out, "%s", line)
			} else {
				t.take(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (t *tally) take(e event) {
	if e.Package == "" {
		e.Package = e.ImportPath
	}
	id := name{e.Package, e.Test}
	switch e.Action {
	case "output", "build-output":
		if !strings.HasPrefix(e.Output, "=== ") { // RUN, PAUSE, CONT, NAME
			t.output[id] = append(t.output[id], e.Output)
		}
	case "run":
		for parent := e.Test; strings.Contains(parent, "/"); {
			parent = parent[:strings.LastIndex(parent, "/")]
			t.parents[name{e.Package, parent}] = true
		}
	case "pass", "fail", "skip", "build-fail":
		t.verdict[id] = e.Action
		if e.Test != "" && !strings.Contains(e.Test, "/") {
			fmt.Fprintf(&t.times, "%.1f %s %s\n", e.Elapsed, e.Package, e.Test)
		}
		t.tell(id, e)
		delete(t.output, id)
	}
}

// tell prints what a person needs to see of a finished test or package.
func (t *tally) tell(id name, e event) {
	if id.test == "" && e.Action == "fail" {
		t.tellUnfinished(id.pkg)
	}
	switch {
	case e.Action == "fail" || e.Action == "build-fail":
		fmt.Fprintf(t.out, "FAIL %s %s (%.1fs)\n%s", id.pkg, id.test, e.Elapsed, strings.Join(t.output[id], ""))
	case e.Action == "skip" && id.test != "":
		fmt.Fprintf(t.out, "SKIP %s %s\n%s", id.pkg, id.test, strings.Join(t.output[id], ""))
	case id.test == "":
		fmt.Fprintf(t.out, "%s %s (%.1fs)\n", e.Action, id.pkg, e.Elapsed)
	}
}

// tellUnfinished prints what tests said that were cut off, by a panic or for
// want of time; they count as failures.
func (t *tally) tellUnfinished(pkg string) {
	for id, output := range t.output {
		if id.pkg == pkg && id.test != "" {
			fmt.Fprintf(t.out, "FAIL %s %s: cut off\n%s", id.pkg, id.test, strings.Join(output, ""))
			t.verdict[id] = "fail"
		}
	}
}

func (t *tally) keepTimes(file string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, t.times.String())
	return errors.Join(err, f.Close())
}

func (t *tally) count() (passed, failed, skipped int) {
	failing := map[string]bool{}
	for id, verdict := range t.verdict {
		if id.test == "" || t.parents[id] {
			continue
		}
		switch verdict {
		case "pass":
			passed++
		case "fail":
			failed++
			failing[id.pkg] = true
		case "skip":
			skipped++
		}
	}
	for id, verdict := range t.verdict {
		alone := id.test == "" || t.parents[id]
		if alone && (verdict == "fail" || verdict == "build-fail") && !failing[id.pkg] {
			failed++
			failing[id.pkg] = true
		}
	}
	return passed, failed, skipped
}
