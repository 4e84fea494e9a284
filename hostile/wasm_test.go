//go:build !windows

package hostile

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rillbox/cache/cachetest"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
	"rillbox/wasm"
)

// isAssembled says that a language is one of the engine wasm.
func isAssembled(name job.Language) bool {
	return slices.ContainsFunc(wasm.Languages, func(l job.LanguageInfo) bool { return l.Name == name })
}

// tongue is how a language says what all of them can try. Its texts have PATH and TO in
// place of paths; one that is empty is what the language can't say.
type tongue struct {
	language job.Language
	head     string
	// wrap makes a row of a program, or of a cell, in which its error ends the row alone. The
	// row says "ran N" behind.
	wrap func(n int, code string) string
	tail string

	read, list, size           string
	write, add, remove, mkdir  string
	rename, link, hard         string // from PATH to TO, of which link's PATH is the link's text
	mode, times                string
	environment, system, fetch string // system has COMMAND, fetch URL
	wire                       string // how TEXT is written to the file PATH, byte for byte
	// ends says that an error ends a whole program: each row is a cell.
	ends bool
	// moves says why a file can't be renamed from one directory of the machine's to another.
	moves string
	// own are the language's own rows. One that spoils its child runs by itself.
	own []attack
	// without says why the language has no controls by grants.
	without string
}

// forged is the evidence of a result that was not the program's own.
func forged(_ *scene, o outcome) string {
	if strings.Contains(string(o.Value), "forged") {
		return "its result was believed"
	}
	return ""
}

// shows is the evidence of a text in what the program printed.
func shows(texts ...string) func(*scene, outcome) string {
	return func(_ *scene, o outcome) string {
		for _, text := range texts {
			if strings.Contains(o.Stdout.String(), text) {
				return "it showed " + text
			}
		}
		return ""
	}
}

const (
	noProc     = "a program's tree of files has no such directory, whatever is granted"
	noStart    = "WebAssembly has no way to start a process"
	noLinks    = "links are followed in the program's own tree, where a hard link can't be made"
	noOwnLinks = "Deno makes links only where all files are granted, of which a program sees none"
	noServer   = "the server's environment is no child's"
)

// rows are what the language tries.
func (l tongue) rows() (rows []attack) {
	add := func(name, code string, more ...string) {
		if code == "" {
			return
		}
		for i := 0; i < len(more); i += 2 {
			code = strings.ReplaceAll(code, more[i], more[i+1])
		}
		rows = append(rows, attack{name: name, code: code, noControl: l.without})
	}
	last := func() *attack { return &rows[len(rows)-1] }
	const secret, dir = "%DIR%/secret.txt", "%DIR%"
	add("a file read", l.read, "PATH", secret)
	add("a file read by a link in the workspace", l.read, "PATH", "%OUT%/secret.txt")
	add("a file read by a link of the workspace's root", l.read, "PATH", "%ROOT%"+secret)
	add("a file read by the parents of the workspace", l.read, "PATH", "/workspace/../../../../../../../.."+secret)
	add("a file read by a relative path", l.read, "PATH", "../../../../../../../.."+secret)
	add("a file read by a path with odd names", l.read, "PATH", "/.//workspace/./..//"+secret)
	if l.link != "" && l.read != "" {
		add("a file read by a link of its own", l.link+"\n"+l.read, "PATH", secret, "TO", "%OWN%")
		last().code = strings.ReplaceAll(l.link, "PATH", secret) + l.separator() + l.read
		last().code = strings.NewReplacer("TO", "%OWN%", "PATH", "%OWN%").Replace(last().code)
		last().noControl = noOwnLinks
		add("a file read by a link of a link", l.link, "PATH", "/", "TO", "%OWN%a")
		last().code += l.separator() + strings.NewReplacer("PATH", "%OWN%a"+dir, "TO", "%OWN%b").Replace(l.link) + l.separator() + strings.ReplaceAll(l.read, "PATH", "%OWN%b/secret.txt")
		last().noControl = noOwnLinks
	}
	if l.hard != "" {
		add("a file read by a hard link", strings.NewReplacer("PATH", secret, "TO", "%OWN%hard").Replace(l.hard)+l.separator()+strings.ReplaceAll(l.read, "PATH", "%OWN%hard"))
		last().noControl = noLinks
	}
	add("names listed", l.list, "PATH", dir+"/names")
	add("names listed by a link", l.list, "PATH", "%OUT%/names")
	add("a file's size", l.size, "PATH", secret)
	if l.size != "" {
		last().evidence = says("size 32")
	}
	add("a file made", l.write, "PATH", dir+"/made")
	add("a file made by a link", l.write, "PATH", "%OUT%/made")
	add("a file made by a link that leads to nothing", l.write, "PATH", "%NOTHING%")
	if l.language == "fsharp" {
		last().noControl = "what is plain JavaScript makes no file where a link leads to nothing"
	}
	add("a file written over", l.write, "PATH", secret)
	add("a file added to", l.add, "PATH", secret)
	add("a file removed", l.remove, "PATH", secret)
	add("a file removed by a link", l.remove, "PATH", "%OUT%/secret.txt")
	add("a directory made", l.mkdir, "PATH", dir+"/made")
	add("a file renamed", l.rename, "PATH", secret, "TO", dir+"/moved")
	for name, ends := range map[string][]string{"a file renamed into the workspace": {secret, "%OWN%moved"}, "a file of the workspace renamed out of it": {"%MINE%", "%OUT%/moved"}} {
		if l.rename != "" {
			add(name, l.rename, "PATH", ends[0], "TO", ends[1])
			last().noControl = cmp.Or(l.moves, l.without)
		}
	}
	add("a link made", l.link, "PATH", "/etc/passwd", "TO", dir+"/link")
	if l.link != "" {
		last().noControl = noOwnLinks
	}
	add("a file's mode", l.mode, "PATH", secret)
	add("a file's times", l.times, "PATH", secret)
	for _, path := range []string{"/proc/self/environ", "/proc/%SERVER%/environ", "/proc/%VICTIM%/environ", "/proc/%VICTIM%/cwd/secret.txt", "/proc/self/root" + secret, "/proc/self/cwd/.." + secret, "/dev/fd/../root" + secret, "/rillbox/program/../../../../../.." + secret} {
		if l.read != "" {
			add(path, l.read, "PATH", path)
			last().noControl = noProc
		}
	}
	for _, path := range []string{"/rillbox", "/rillbox/program/own", "%CACHE%", "%RUNS%", "/proc", "/proc/self/fd", "/proc/self/task"} {
		if l.list != "" {
			add("names in "+path, l.list, "PATH", path)
			last().noControl, last().evidence = noProc, shows("part-0", "guest", "blobs", "trees", "own/deno", "cmdline")
		}
	}
	for _, path := range []string{"/etc/passwd", "/etc/shadow", "/etc/hostname"} {
		if l.read != "" {
			add(path, l.read, "PATH", path)
			last().noControl, last().evidence = "a program's own tree has /etc", shows("daemon:", "nobody:", "root:*", "root:!", hostname()+"\n")
		}
	}
	for _, path := range []string{"/dev/fd/3", "/proc/self/fd/3", "/dev/fd/../fd/3", "/rillbox/program/../../dev/fd/3"} {
		if l.wire != "" {
			add("the wire by "+path, l.wire, "PATH", path, "TEXT", `{"type":"result","value":"forged"}`)
			last().noControl, last().evidence = noProc, forged
		}
	}
	add("the environment", l.environment)
	if l.environment != "" {
		last().noControl = noServer
	}
	for _, command := range []string{"touch %DIR%/made", "/bin/sh %DIR%/run.sh", "cat %DIR%/secret.txt"} {
		if l.system != "" {
			add("the command "+command, l.system, "COMMAND", command)
			last().noControl = noStart
		}
	}
	for _, url := range []string{"http://%HTTP%/", "https://%HTTP%/", "file://" + secret, "ftp://%HTTP%/"} {
		if l.fetch != "" {
			add("the URL "+url, l.fetch, "URL", url)
			if !strings.HasPrefix(url, "http:") || l.language != "bash" {
				last().noControl = "WebAssembly has no network"
			}
		}
	}
	for _, a := range l.own {
		if a.noControl == "" {
			a.noControl = l.without
		}
		rows = append(rows, a)
	}
	return rows
}

func (l tongue) separator() string {
	switch l.language {
	case "prolog":
		return ", "
	case "php", "perl", "sql", "duckdb", "postgresql", "c", "cpp":
		return "; "
	}
	return "\n"
}

// trials are rows with their scenes, and one program of all.
type trials struct {
	rows      []attack
	scenes    []*scene
	workspace string
	code      string
}

// try makes a program of rows, and what its texts name: beside the scene's words %OUT%, a
// link in the workspace to %DIR%; %ROOT%, one to /; %NOTHING%, one to a file there that is
// not; %MINE%, a file of its own; and %OWN%, a name that is free.
func (l tongue) try(t *testing.T, rows []attack) *trials {
	t.Helper()
	tr := &trials{rows: rows}
	var err error
	if tr.workspace, err = filepath.EvalSymlinks(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	wrap := l.wrap
	if l.ends {
		wrap = func(int, string) string { return "" }
	}
	code.WriteString(l.head)
	for i, a := range rows {
		s := newScene(t, a)
		for word, link := range map[string]string{"OUT": s.dir(), "ROOT": "/", "NOTHING": filepath.Join(s.dir(), "made")} {
			name := fmt.Sprintf("%s%d", strings.ToLower(word), i)
			if err := os.Symlink(link, filepath.Join(tr.workspace, name)); err != nil {
				t.Fatal(err)
			}
			s.words["%"+word+"%"] = name
		}
		s.words["%OWN%"] = fmt.Sprintf("own%d", i)
		s.words["%MINE%"] = fmt.Sprintf("mine%d", i)
		write(t, filepath.Join(tr.workspace, s.words["%MINE%"]), "mine")
		code.WriteString(wrap(i, s.fillText(a.code)))
		tr.scenes = append(tr.scenes, s)
	}
	code.WriteString(l.tail)
	tr.code = code.String()
	return tr
}

// grants are what rows are given, of all of their scenes.
func (tr *trials) grants(of func(attack) []string) (all []string) {
	for i, a := range tr.rows {
		for _, grant := range tr.scenes[i].fill(of(a)) {
			if !slices.Contains(all, grant) {
				all = append(all, grant)
			}
		}
	}
	return all
}

// run runs the rows as one program, or as a cell of a session.
func (tr *trials) run(t *testing.T, l tongue, grants []string, level launcher.Level, cell bool) outcome {
	t.Helper()
	engine := newEngine(t, l.language, grants, level).(interface {
		job.Engine
		job.SessionOpener
	})
	cachetest.NeedNetwork(t, engine.(*wasm.Engine).Prepare(context.WithoutCancel(t.Context()), func(job.Event) {}, l.language))
	p := job.Program{Language: l.language, Code: tr.code, Workspace: tr.workspace, Timeout: togetherTimeout}
	if !cell && !l.ends {
		return runProgram(t.Context(), engine, p, nil)
	}
	s, err := engine.OpenSession(t.Context(), job.SessionOptions{Language: l.language, Workspace: tr.workspace}, func(job.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !l.ends {
		return runProgram(t.Context(), s, p, nil)
	}
	var whole outcome
	var text strings.Builder
	for i, a := range tr.rows {
		p.Code = tr.scenes[i].fillText(a.code)
		o := runProgram(t.Context(), s, p, nil)
		if o.err != nil || o.State == job.StateLost || o.Status != job.Completed && o.Status != job.Failed {
			return o
		}
		whole.Status, whole.Value = o.Status, append(whole.Value, o.Value...)
		fmt.Fprintf(&text, "%s\nran %d.\n", o.text(), i)
	}
	whole.Stdout.Head = []byte(text.String())
	return whole
}

// each hands on each row with its scene. One that did not run to its end fails.
func (tr *trials) each(t *testing.T, o outcome, check func(a attack, s *scene)) {
	t.Helper()
	for i, a := range tr.rows {
		if !strings.Contains(o.Stdout.String()+o.events, fmt.Sprintf("ran %d.", i)) {
			t.Errorf("%q did not run: %s\n%s", a.name, o.summary(), o.text())
			return
		}
		check(a, tr.scenes[i])
	}
}

// tryTongue runs all rows of a language together, since starting one takes a while: in a
// program behind the least wall that has to hold them, in a cell behind the best, and the
// control likewise.
func tryTongue(t *testing.T, l tongue) {
	t.Helper()
	needWall(t)
	t.Parallel()
	rows := l.rows()
	shown := func(a attack) string { return t.Name() + "/" + a.name }
	controls := slices.DeleteFunc(slices.Clone(rows), func(a attack) bool { return a.noControl != "" || wasShown(t, shown(a)) })
	if len(controls) > 0 {
		t.Run("control", func(t *testing.T) {
			tr := l.try(t, controls)
			o := tr.run(t, l, tr.grants(func(a attack) []string {
				grants := append([]string{"--allow-read=%DIR%", "--allow-write=%DIR%"}, a.control...)
				if strings.Contains(a.code, "%HTTP%") {
					grants = append(grants, "--allow-net=%HTTP%")
				}
				return grants
			}), noWall, false)
			t.Logf("%s", o.summary())
			tr.each(t, o, func(a attack, s *scene) {
				if len(s.evidenceOf(o)) == 0 {
					t.Errorf("%q is not shown to work without the boundary, so it shows nothing", a.name)
				} else {
					noteShown(t, shown(a))
				}
			})
			if t.Failed() {
				t.Log(o.text())
			}
		})
	}
	for _, level := range (attack{workspace: true}).levels(false) {
		for _, cell := range []bool{false, true} {
			if cell != (level == launcher.Best) && !cachetest.Long() {
				continue
			}
			t.Run(fmt.Sprintf("%v cell %v", level, cell), func(t *testing.T) {
				for _, row := range rows {
					if row.spoils {
						tr := l.try(t, []attack{row})
						o := tr.run(t, l, nil, level, cell)
						t.Logf("bounded, behind %v: %s", level, o.summary())
						if found := tr.scenes[0].evidenceOf(o); len(found) > 0 || o.err != nil {
							t.Errorf("behind %v %q got through: %s\n%s", level, row.name, strings.Join(found, "; "), o.text())
						}
					}
				}
				tr := l.try(t, slices.DeleteFunc(slices.Clone(rows), func(a attack) bool { return a.spoils }))
				began := time.Now()
				o := tr.run(t, l, nil, level, cell)
				t.Logf("bounded, behind %v, in %v: %s", level, time.Since(began), o.summary())
				tr.each(t, o, func(a attack, s *scene) {
					if found := s.evidenceOf(o); len(found) > 0 {
						t.Errorf("behind %v %q got through: %s\n%s", level, a.name, strings.Join(found, "; "), o.text())
					}
				})
				if o.err != nil || o.Status != job.Completed && o.Status != job.Failed {
					t.Errorf("the rows ended as %s: %v\n%s", o.Status, o.err, o.text())
				}
			})
		}
	}
}

// tryAlone runs rows of languages whose error ends all, each as a program of its own.
func tryAlone(t *testing.T, rows []attack) {
	t.Helper()
	needWall(t)
	t.Parallel()
	run := func(t *testing.T, a attack, level launcher.Level, grants ...string) (*scene, outcome) {
		l := tongue{language: a.language, wrap: func(_ int, code string) string { return code }}
		tr := l.try(t, []attack{a})
		return tr.scenes[0], tr.run(t, l, tr.scenes[0].fill(grants), level, false)
	}
	for i, a := range rows {
		t.Run(strings.ReplaceAll(a.name, "/", "|"), func(t *testing.T) {
			if a.noControl == "" {
				onceShown(t, func() {
					s, o := run(t, a, noWall, "--allow-read=%DIR%", "--allow-write=%DIR%")
					a.checkControl(t, s, o)
				})
			}
			levels := (attack{workspace: true}).levels(false)
			level := levels[i%len(levels)]
			s, o := run(t, a, level)
			a.checkBounded(t, level, s, o)
		})
	}
}
