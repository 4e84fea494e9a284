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
	"slices"
	"strings"
	"testing"
	"time"

	"rillbox/cache/cachetest"
	"rillbox/pyodide"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// rowsPython runs many rows in one child.
//
//go:embed testdata/rows.py
var rowsPython string

//go:embed testdata/bare.mjs
var bareModule string

// tryTogether runs rows of Python that leave each other alone in one child, and
// their controls in another: starting Python takes half a second. Rows with the
// same grants share a child, which is granted what they name of all of their scenes.
// A row may set name, code, evidence, workspace, grants, control, bare, noControl,
// prepare and linux. A bare control is Pyodide in a Deno process with all
// permissions and our environment, outside of Rillbox.
func tryTogether(t *testing.T, attacks []attack) {
	t.Helper()
	for i := range attacks {
		attacks[i].language = job.Python
	}
	problems := controlTogether(t, attacks, "program", func(grants []string, p job.Program) outcome {
		return runProgram(t.Context(), newEngine(t, job.Python, grants, noWall), p, nil)
	})
	for _, rows := range alike(attacks, attack.grantsAndWorkspace) {
		for _, level := range rows[0].levels(false) {
			runTogether(t, rows, attack.granted, func(grants []string, p job.Program) outcome {
				if rows[0].workspace {
					p.Workspace = t.TempDir()
				}
				return runProgram(t.Context(), newEngine(t, job.Python, grants, level), p, nil)
			}, boundedTogether(t, level, problems))
		}
		if !strings.Contains(fmt.Sprint(rows[0].grants), "%") {
			tryCells(t, rows)
			continue
		}
		t.Run("in sessions", func(t *testing.T) { tryCellsTogether(t, rows) })
	}
}

// tryCells runs rows as cells that are like their programs in testdata/rows.py.
func tryCells(t *testing.T, attacks []attack) {
	t.Helper()
	for i := range attacks {
		attacks[i].code = fmt.Sprintf("__name__ = %q\n", attacks[i].name) + attacks[i].code
		attacks[i].ends = crash
	}
	tryInSessions(t, attacks)
}

// tryCellsTogether runs rows with grants of their scenes in one cell.
func tryCellsTogether(t *testing.T, attacks []attack) {
	t.Helper()
	needWall(t)
	t.Parallel()
	run := func(level launcher.Level) func([]string, job.Program) outcome {
		return func(grants []string, p job.Program) outcome {
			return runProgram(t.Context(), ownSession(t, job.Python, newEngine(t, job.Python, grants, level)), p, nil)
		}
	}
	problems := controlTogether(t, attacks, "cell", run(noWall))
	for _, level := range attacks[0].levels(true) {
		runTogether(t, attacks, attack.granted, run(level), boundedTogether(t, level, problems))
	}
}

func (a attack) granted() []string { return a.grants }

// grantedControl is what is granted in the control.
func (a attack) grantedControl() []string {
	if a.control == nil {
		return []string{"--allow-all"}
	}
	return a.control
}

func (a attack) grantsAndWorkspace() string { return fmt.Sprint(a.grants, a.workspace) }

// alike are the rows by what they have in common, in their order.
func alike(attacks []attack, common func(attack) string) (groups [][]attack) {
	at := map[string]int{}
	for _, a := range attacks {
		key := common(a)
		i, known := at[key]
		if !known {
			i = len(groups)
			at[key], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], a)
	}
	return groups
}

// controlTogether runs the controls that have not shown their attack to work before,
// and says by row which did not do so now. run runs those that are not bare.
func controlTogether(t *testing.T, attacks []attack, kind string, run func([]string, job.Program) outcome) (problems map[string]string) {
	t.Helper()
	problems = map[string]string{}
	name := func(a attack) string { return t.Name() + "/" + a.name + ", " + kind }
	attacks = slices.DeleteFunc(slices.Clone(attacks), func(a attack) bool {
		return a.noControl != "" || a.bare && kind == "cell" || wasShown(t, name(a))
	})
	for _, rows := range alike(attacks, func(a attack) string { return fmt.Sprint(a.bare, a.control, a.workspace) }) {
		run := run
		if rows[0].bare {
			run = func(_ []string, p job.Program) outcome { return runBarePython(t, p) }
		}
		runTogether(t, rows, attack.grantedControl, run, func(a attack, s *scene, _, own outcome) {
			if found := s.evidenceOf(own); len(found) == 0 {
				problems[a.name] = "the attack is not shown to work without the boundary, so it shows nothing: " + own.summary()
			} else {
				noteShown(t, name(a))
			}
		})
	}
	return problems
}

// boundedTogether checks that a row came to nothing, as a subtest.
func boundedTogether(t *testing.T, level launcher.Level, problems map[string]string) func(attack, *scene, outcome, outcome) {
	return func(a attack, s *scene, whole, own outcome) {
		t.Run(strings.ReplaceAll(a.name, "/", "|"), func(t *testing.T) {
			t.Logf("bounded, behind %v: %s", level, own.summary())
			if problem := problems[a.name]; problem != "" {
				t.Error(problem)
			}
			if found := s.evidenceOf(whole); len(found) > 0 {
				t.Errorf("behind %v the attack got through: %s\n%s", level, strings.Join(found, "; "), own.summary())
			}
		})
	}
}

// runTogether makes a scene for each row, runs all of them in one program, and
// hands each its scene, its child's outcome, and its own part of that. A row
// that ends the child ends its own turn only.
func runTogether(t *testing.T, attacks []attack, grants func(attack) []string, run func(grants []string, p job.Program) outcome, each func(a attack, s *scene, whole, own outcome)) {
	t.Helper()
	type row struct {
		Name string `json:"name"`
		Code string `json:"code"`
	}
	rows := make([]row, len(attacks))
	scenes := make([]*scene, len(attacks))
	var granted []string
	for i, a := range attacks {
		scenes[i] = newScene(t, a)
		rows[i] = row{a.name, scenes[i].fillText(a.code)}
		for _, grant := range scenes[i].fill(grants(a)) {
			if !slices.Contains(granted, grant) {
				granted = append(granted, grant)
			}
		}
	}
	for start := 0; start < len(rows); {
		table, err := json.Marshal(rows[start:])
		if err != nil {
			t.Fatal(err)
		}
		whole := run(granted, job.Program{Language: job.Python, Code: rowsPython, Args: []string{string(table)}, Timeout: togetherTimeout})
		parts, rest, began := sections(whole.Stdout.String())
		ran := len(parts)
		if whole.err != nil || !began {
			t.Fatalf("the rows did not run: %s", whole.summary())
		}
		for i, part := range parts {
			own := outcome{Result: job.Result{Status: job.Completed}}
			own.Stdout.Head = []byte(part)
			each(attacks[start+i], scenes[start+i], whole, own)
		}
		start += ran
		if start < len(rows) { // this one ended the child: the rest get another
			own := whole
			own.events, own.Stdout = "", job.Captured{Head: []byte(rest)}
			each(attacks[start], scenes[start], whole, own)
			start++
		}
	}
}

// togetherTimeout is for all rows of a table on a busy machine, and for loading
// Python without a snapshot.
const togetherTimeout = 2 * time.Minute

// sections splits what testdata/rows.py printed by row; rest is what came after
// the last row that ran to its end.
func sections(stdout string) (parts []string, rest string, began bool) {
	_, stdout, began = strings.Cut(stdout, "\x02\n")
	for {
		mark := strings.IndexByte(stdout, '\x1e')
		if mark < 0 {
			return parts, stdout, began
		}
		end := strings.IndexByte(stdout[mark:], '\n')
		if end < 0 {
			return parts, stdout, began
		}
		parts = append(parts, stdout[:mark+end])
		stdout = stdout[mark+end+1:]
	}
}

// runBarePython runs a program outside of Rillbox.
func runBarePython(t *testing.T, p job.Program) outcome {
	t.Helper()
	distribution, err := pyodide.LocateDistribution(t.Context(), pyodide.LocateOptions{Cache: openShared(t)})
	cachetest.NeedNetwork(t, err)
	dir := t.TempDir()
	module, program := filepath.Join(dir, "bare.mjs"), filepath.Join(dir, "main.py")
	write(t, module, bareModule)
	write(t, program, p.Code)
	ctx, cancel := context.WithTimeout(t.Context(), togetherTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, denoBinary(t), append([]string{"run", "--quiet", "--no-prompt", "--allow-all", module, distribution.Dir, distribution.Micropip, program}, p.Args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DENO_DIR="+filepath.Join(dir, "deno"), "NO_COLOR=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	o := outcome{Result: job.Result{Status: job.Completed}}
	if err := cmd.Run(); err != nil {
		o.Status = job.Failed
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
