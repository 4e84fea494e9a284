//go:build !windows

package hostile

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rillbox/cache/cachetest"
	"rillbox/pyodide"
	"rillbox/supervisor"
)

// rowsPython runs many rows in one child.
//
//go:embed testdata/rows.py
var rowsPython string

//go:embed testdata/bare.mjs
var bareModule string

// tryTogether runs rows of Python that leave each other alone in one child, and
// their controls in another: starting Python takes half a second. A row may set
// name, code, evidence, bare, noControl, prepare and linux. A bare control is
// Pyodide in a Deno process with all permissions and our environment, outside of
// Rillbox.
func tryTogether(t *testing.T, attacks []attack) {
	t.Helper()
	var inEngine, bare []attack
	for i := range attacks {
		attacks[i].language = supervisor.Python
		switch a := attacks[i]; {
		case a.noControl != "":
		case a.bare:
			bare = append(bare, a)
		default:
			inEngine = append(inEngine, a)
		}
	}
	ends := map[string][]string{} // by row: what the attack is told
	if len(inEngine) > 0 {
		runTogether(t, inEngine, func(p supervisor.Program) outcome {
			return runProgram(t.Context(), newEngine(t, supervisor.Python, []string{"--allow-all"}, noWall), p, nil)
		}, func(a attack, s *scene, whole, own outcome) {
			if found := s.evidenceOf(own); len(found) == 0 {
				ends[a.name] = append(ends[a.name], "the attack is not shown to work without the boundary, so it shows nothing: "+own.summary())
			}
		})
	}
	if len(bare) > 0 {
		runTogether(t, bare, func(p supervisor.Program) outcome { return runBarePython(t, p) }, func(a attack, s *scene, whole, own outcome) {
			if found := s.evidenceOf(own); len(found) == 0 {
				ends[a.name] = append(ends[a.name], "the attack is not shown to work in a bare Pyodide, so it shows nothing: "+own.summary())
			}
		})
	}
	for _, level := range (attack{}).levels(false) {
		runTogether(t, attacks, func(p supervisor.Program) outcome {
			return runProgram(t.Context(), newEngine(t, supervisor.Python, nil, level), p, nil)
		}, func(a attack, s *scene, whole, own outcome) {
			t.Run(strings.ReplaceAll(a.name, "/", "|"), func(t *testing.T) {
				t.Logf("bounded, behind %v: %s", level, own.summary())
				for _, problem := range ends[a.name] {
					t.Error(problem)
				}
				if found := s.evidenceOf(whole); len(found) > 0 {
					t.Errorf("behind %v the attack got through: %s\n%s", level, strings.Join(found, "; "), own.summary())
				}
			})
		})
	}
	for i := range attacks {
		attacks[i].code = fmt.Sprintf("__name__ = %q\n", attacks[i].name) + attacks[i].code // as testdata/rows.py has it
		attacks[i].ends = crash
	}
	tryInSessions(t, attacks)
}

// runTogether makes a scene for each row, runs all of them in one program, and
// hands each its scene, its child's outcome, and its own part of that. A row
// that ends the child ends its own turn only.
func runTogether(t *testing.T, attacks []attack, run func(supervisor.Program) outcome, each func(a attack, s *scene, whole, own outcome)) {
	t.Helper()
	type row struct {
		Name string `json:"name"`
		Code string `json:"code"`
	}
	rows := make([]row, len(attacks))
	scenes := make([]*scene, len(attacks))
	for i, a := range attacks {
		scenes[i] = newScene(t, a)
		rows[i] = row{a.name, scenes[i].fillText(a.code)}
	}
	for start := 0; start < len(rows); {
		table, err := json.Marshal(rows[start:])
		if err != nil {
			t.Fatal(err)
		}
		whole := run(supervisor.Program{Language: supervisor.Python, Code: rowsPython, Args: []string{string(table)}})
		parts, rest := sections(whole.Stdout.String())
		ran := len(parts)
		if whole.err != nil || ran == 0 && whole.Status == supervisor.Completed {
			t.Fatalf("the rows did not run: %s", whole.summary())
		}
		for i, part := range parts {
			own := outcome{Result: supervisor.Result{Status: supervisor.Completed}}
			own.Stdout.Head = []byte(part)
			each(attacks[start+i], scenes[start+i], whole, own)
		}
		start += ran
		if start < len(rows) { // this one ended the child: the rest get another
			own := whole
			own.events, own.Stdout = "", supervisor.Captured{Head: []byte(rest)}
			each(attacks[start], scenes[start], whole, own)
			start++
		}
	}
}

// sections splits what testdata/rows.py printed by row; rest is what came after
// the last row that ran to its end.
func sections(stdout string) (parts []string, rest string) {
	for {
		mark := strings.IndexByte(stdout, '\x1e')
		if mark < 0 {
			return parts, stdout
		}
		end := strings.IndexByte(stdout[mark:], '\n')
		if end < 0 {
			return parts, stdout
		}
		parts = append(parts, stdout[:mark+end])
		stdout = stdout[mark+end+1:]
	}
}

// bareTimeout is for loading Python without a snapshot on a busy machine, too.
const bareTimeout = 2 * time.Minute

// runBarePython runs a program outside of Rillbox.
func runBarePython(t *testing.T, p supervisor.Program) outcome {
	t.Helper()
	distribution, err := pyodide.LocateDistribution(t.Context(), pyodide.LocateOptions{Cache: openShared(t)})
	cachetest.NeedNetwork(t, err)
	dir := t.TempDir()
	module, program := filepath.Join(dir, "bare.mjs"), filepath.Join(dir, "main.py")
	write(t, module, bareModule)
	write(t, program, p.Code)
	ctx, cancel := context.WithTimeout(t.Context(), bareTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, denoBinary(t).Path, append([]string{"run", "--quiet", "--no-prompt", "--allow-all", module, distribution.Dir, distribution.Micropip, program}, p.Args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DENO_DIR="+filepath.Join(dir, "deno"), "NO_COLOR=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	o := outcome{Result: supervisor.Result{Status: supervisor.Completed}}
	if err := cmd.Run(); err != nil {
		o.Status = supervisor.Failed
	}
	o.ExitCode = cmd.ProcessState.ExitCode()
	o.Stdout.Head, o.Stderr.Head = stdout.Bytes(), stderr.Bytes()
	return o
}

// printed is the evidence of a text in what the program wrote. A traceback may
// show the line that would write it.
func printed(text string) func(*scene, outcome) string {
	return func(_ *scene, o outcome) string {
		if strings.Contains(o.Stdout.String()+o.Stderr.String(), text) {
			return fmt.Sprintf("%q was printed", text)
		}
		return ""
	}
}
