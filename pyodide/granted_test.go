//go:build !windows

package pyodide

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rillbox/cache/cachetest"
	"rillbox/deno"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// grounds makes files in directories named by the first part of their paths, and
// gives the directory that holds all of it, which has no comma in its name.
func grounds(t *testing.T, files ...string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "granted-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("text of "+name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestPythonSeesWhatIsGranted: files and directories at their own paths, as far as
// Deno's flags go and no further, in programs of their own and in sessions, behind
// each wall.
func TestPythonSeesWhatIsGranted(t *testing.T) {
	for _, level := range []launcher.Level{launcher.Deno, launcher.Landlock, launcher.Namespaces} {
		if level > launcher.Offered().Level {
			continue
		}
		t.Run(level.String(), func(t *testing.T) {
			dir := grounds(t, "read/f.csv", "read/deep/g", "some/secret/s", "some/f", "alone.txt", "out/there", "one.log", "outside/o")
			for name, target := range map[string]string{"read/in": "f.csv", "read/across": dir + "/alone.txt", "read/leads": dir + "/outside/o", "read/up": "../outside/o", "way": dir + "/read"} {
				if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			e := newEngine(t, permit(t, "--allow-read="+dir+"/read,"+dir+"/some,"+dir+"/read/deep,"+dir+"/way,"+dir+"/alone.txt,"+dir+"/missing", "--deny-read="+dir+"/some/secret",
				"--allow-write="+dir+"/out,"+dir+"/one.log"), func(o *Options) { o.Wall, o.Warm = level, 1 })
			session := open(t, e, job.SessionOptions{})
			rows := [][2]string{
				{"open(d + '/read/f.csv').read()", `"text of read/f.csv"`},
				{"open(d + '/alone.txt').read()", `"text of alone.txt"`},
				{"open(d + '/read/in').read() + open(d + '/way/in').read()", `"text of read/f.csvtext of read/f.csv"`},
				{"open(d + '/read/across').read()", `"text of alone.txt"`},
				{"[sorted(os.listdir(d)), sorted(os.listdir(d + '/read')), os.listdir(d + '/read/deep')]", `[["alone.txt", "one.log", "out", "read", "some", "way"], ["across", "deep", "f.csv", "in", "leads", "up"], ["g"]]`},
				{"open(d + '/some/f').read()", `"text of some/f"`},
				{"[os.path.isdir(d + '/read'), os.path.isfile(d + '/alone.txt'), os.stat(d + '/alone.txt').st_size]", `[true, true, 17]`},
				{"open(d + '/out/new', 'w').write('n'); open(d + '/one.log', 'w').write('l'); os.mkdir(d + '/out/sub'); open(d + '/out/sub/x', 'wb').write(b'x')", `1`},
				{"os.remove(d + '/out/new'); os.remove(d + '/out/sub/x'); os.rmdir(d + '/out/sub')", ``},
			}
			for _, refused := range []string{
				"open(d + '/some/secret/s')", "os.listdir(d + '/some/secret')", "open(d + '/read/f.csv', 'w')", "open(d + '/read/new', 'w')", "os.mkdir(d + '/read/new')",
				"os.remove(d + '/read/f.csv')", "os.rename(d + '/read/f.csv', d + '/read/h')", "os.chmod(d + '/read/f.csv', 0)", "os.truncate(d + '/alone.txt', 0)", "os.utime(d + '/alone.txt')",
				"open(d + '/out/there')", "os.listdir(d + '/out')", "os.stat(d + '/out/there')", "open(d + '/one.log')", "os.symlink('/etc', d + '/out/link')",
			} {
				rows = append(rows, [2]string{refused, "PermissionError"})
			}
			for _, missing := range []string{"/read/leads", "/read/up", "/outside/o", "/missing", "/read/../outside/o", "/read/none"} {
				rows = append(rows, [2]string{"open(d + '" + missing + "')", "FileNotFoundError"})
			}
			for _, busy := range []string{"os.remove(d + '/alone.txt')", "open('/tmp/x', 'w').close(); os.replace('/tmp/x', d + '/alone.txt')", "os.rename(d + '/out', d + '/out2')", "os.rmdir(d + '/read')"} {
				rows = append(rows, [2]string{busy, "OSError"})
			}
			// Each by itself in the session; a program of its own tries all at once.
			code := "import os, json\nd = " + fmt.Sprintf("%q", dir) + "\n"
			for _, row := range rows {
				r := in(t, session, python(code+row[0]))
				if r.Error == nil && string(r.Value) != row[1] || r.Error != nil && errorName(r) != row[1] {
					t.Errorf("%s: %s, value %s, %+v; want %s", row[0], r.Status, r.Value, r.Error, row[1])
				}
			}
			for range 2 { // the second time in a warm worker
				r := completed(t, e, python(code+"try: open(d + '/read/new', 'w')\nexcept PermissionError as e: pass\nopen(d + '/out/of', 'w').write('x')\n[open(d + '/read/f.csv').read(), os.listdir(d + '/read/deep'), os.path.exists(d + '/outside')]"))
				if string(r.Value) != `["text of read/f.csv", ["g"], false]` {
					t.Errorf("value %s", r.Value)
				}
				e.pool.Idle()
			}
			for name, want := range map[string]string{"one.log": "l", "out/of": "x", "alone.txt": "text of alone.txt", "read/f.csv": "text of read/f.csv", "outside/o": "text of outside/o"} {
				if text, err := os.ReadFile(filepath.Join(dir, name)); string(text) != want {
					t.Errorf("%s holds %q, %v", name, text, err)
				}
			}
			narrowed := python(code + "[os.listdir(d), open(d + '/read/f.csv').read()]")
			narrowed.Permissions = []string{"--allow-read=" + dir + "/read/f.csv"}
			if r := completed(t, e, narrowed); string(r.Value) != `[["read"], "text of read/f.csv"]` {
				t.Errorf("narrowed: value %s", r.Value)
			}
			narrowed.Permissions = []string{}
			if r := run1(t, e, narrowed); errorName(r) != "FileNotFoundError" {
				t.Errorf("narrowed to nothing: %s, %+v", r.Status, r.Error)
			}
		})
	}
}

// TestPythonWritesWhereItReads: a directory that is granted for both.
func TestPythonWritesWhereItReads(t *testing.T) {
	if launcher.Offered().Level < launcher.Landlock {
		t.Skip("such a grant needs a wall")
	}
	dir := grounds(t, "both/a")
	e := newEngine(t, permit(t, "--allow-read="+dir+"/both", "--allow-write="+dir+"/both"))
	r := completed(t, e, python("import os, shutil\nos.chdir("+fmt.Sprintf("%q", dir+"/both")+")\nos.rename('a', 'b'); os.mkdir('c'); shutil.move('b', 'c/b'); open('c/b', 'a').write('!')\n[os.getcwd(), os.listdir(), open('c/b').read()]"))
	if want := fmt.Sprintf(`[%q, ["c"], "text of both/a!"]`, dir+"/both"); string(r.Value) != want {
		t.Errorf("value %s, want %s", r.Value, want)
	}
}

// TestGrantedPathsHideNothing: what Python has itself is not hidden by what the
// machine has there.
func TestGrantedPathsHideNothing(t *testing.T) {
	refused := func(flag string) error {
		t.Helper()
		p, err := permission.Parse([]string{flag})
		if err != nil {
			t.Fatal(err)
		}
		e, err := New(Options{Options: deno.Options{Cache: cachetest.Open(t), Permissions: p}})
		if err == nil {
			e.Close()
		}
		return err
	}
	for _, flag := range []string{"--allow-read=/lib", "--allow-read=/data,/lib/python3.14", "--allow-read=/lib/python3.14/x", "--allow-read=/home", "--allow-read=/proc/cpuinfo", "--allow-read=/workspace/x", "--allow-read=/usr"} {
		if err := refused(flag); err == nil || !strings.Contains(err.Error(), "files of its own") {
			t.Errorf("%s: %v", flag, err)
		}
	}
	for _, flag := range []string{"--allow-read=/home/somebody", "--allow-read=/library", "--allow-read", "--allow-read=/", "--allow-read=/usr/share", "--allow-read=/tmp"} {
		if err := refused(flag); err != nil {
			t.Errorf("%s: %v", flag, err)
		}
	}
	// The list against the tree itself: whatever holds a file when a program starts.
	e := newEngine(t, permit(t, "--allow-read"))
	r := completed(t, e, python("import os\nsorted({os.path.join(d, f) for d, _, fs in os.walk('/') for f in fs} - {__file__})"))
	var files []string
	if err := json.Unmarshal(r.Value, &files); err != nil || len(files) == 0 {
		t.Fatalf("value %.200s, %v", r.Value, err)
	}
	for _, file := range files {
		held := false
		for _, own := range ownFiles {
			held = held || permission.Within(file, own)
		}
		if !held {
			t.Errorf("%s is in no directory of ownFiles", file)
		}
	}
	p := python("1")
	p.Permissions = []string{"--allow-read=/lib"}
	if _, err := e.Run(t.Context(), p, job.Streams{Emit: func(job.Event) {}}); err == nil || !strings.Contains(err.Error(), "files of its own") {
		t.Errorf("a run that asks for /lib: %v", err)
	}
}
