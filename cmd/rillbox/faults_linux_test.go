package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"rillbox/cache/cachetest"
)

// faultsEnv set to "all" has a file operation fail at every place in each way that it
// can, which takes hours; a number is how many of each sweep do. Without it one does,
// of each sweep that has none that did harm before.
const faultsEnv = "RILLBOX_TEST_FAULTS"

// faultTime bounds one run with a fault.
const faultTime = 2 * time.Minute

// faultPrograms each need one package of the shop.
var faultPrograms = []struct{ language, code, want string }{
	{"javascript", `import left from "npm:left@1"; console.log(left("ok"));`, "*ok\n"},
	{"typescript", `import { right } from "jsr:@some/right@1"; const said: string = right("ok"); console.log(said);`, "ok*\n"},
	{"python", `import middle; print(middle.between("ok"))`, "*ok*\n"},
}

// TestAFileOperationThatFails, of an installation or of a run with what is
// installed, gives no wrong result and costs nothing that was there: either the
// program runs all the same, or an error of ours says what failed, and the next run
// works.
func TestAFileOperationThatFails(t *testing.T) {
	needRuntimes(t)
	env := openShop(t)
	ready := newFaultPlace(t, "", env)
	ready.must("rillbox", "setup")
	for _, p := range faultPrograms {
		t.Run(p.language, func(t *testing.T) {
			t.Parallel()
			install := []string{"rillbox", "run", "-l", p.language, "-c", p.code}
			again := []string{"rillbox", "run", "--offline", "-l", p.language, "-c", p.code}
			installed := newFaultPlace(t, ready.cache, env)
			if out := installed.must(install...); out != p.want {
				t.Fatalf("it prints %q", out)
			}
			file := filepath.Join(t.TempDir(), "program"+map[string]string{"javascript": ".js", "typescript": ".ts", "python": ".py"}[p.language])
			if err := os.WriteFile(file, []byte(p.code), 0o600); err != nil {
				t.Fatal(err)
			}
			sum, _, _ := strings.Cut(installed.must("rillbox", "cache", "export", "--without-runtimes", "--offline", file, "-o", file+".rbx"), " ")
			taken := []string{"rillbox", "cache", "import", "--offline", file + ".rbx", "--sha256", sum}
			other := newFaultPlace(t, ready.cache, env)
			for name, s := range map[string]sweep{
				"import":              {from: ready.cache, command: taken, next: again, want: other.must(taken...)},
				"install":             {from: ready.cache, command: install, next: again},
				"children of install": {from: ready.cache, command: install, next: again, children: true},
				"run":                 {from: installed.cache, command: again, next: again},
				"children of run":     {from: installed.cache, command: again, next: again, children: true},
			} {
				t.Run(name, func(t *testing.T) {
					s.env, s.want, s.nextWant = env, cmp.Or(s.want, p.want), p.want
					s.run(t)
				})
			}
		})
	}
}

// TestAFileOperationThatFailsInASetUp: Deno is fetched, unpacked, verified and laid
// out from a registry near by.
func TestAFileOperationThatFailsInASetUp(t *testing.T) {
	t.Parallel()
	npm := startRegistry(t, 1<<30)
	s := sweep{
		from: t.TempDir(), env: npm.environment(""),
		command: []string{"rillbox", "setup", "javascript"},
		next:    []string{"rillbox", "run", "--offline", "-l", "js", "-c", "console.log(6 * 7)"}, nextWant: "42\n",
	}
	s.run(t)
}

// A sweep has operations of a command fail, each in a cache of its own.
type sweep struct {
	from           string   // the cache
	env            []string // beside that of all
	command, next  []string // next: what works afterwards, without the network
	want, nextWant string   // what they print
	children       bool
}

func (s sweep) run(t *testing.T) {
	seen := s.seen(t)
	for _, in := range seen {
		s.once(t, in)
	}
	if len(seen) > 0 && os.Getenv(faultsEnv) == "" {
		return
	}
	place := newFaultPlace(t, s.from, s.env)
	whole := place.watched(injection{children: s.children}, s.command)
	if whole.status != 0 || whole.stdout != s.want {
		t.Fatalf("without a fault: status %d, %q %q", whole.status, whole.stdout, whole.stderr)
	}
	points := placesOf(whole.seen)
	t.Logf("%d operations at %d places", len(whole.seen), len(points))
	for _, in := range s.chosen(points) {
		s.once(t, in)
	}
}

// seenFaults are those that did harm once: the first, or from the first on, of the
// operations that match.
var seenFaults = map[string][]injection{
	// A wrong digest was recorded, by which the package was corrupt from then on.
	"javascript/install": {{only: regexp.MustCompile(`^read .*/files/npm/.*/left\.js$`)}},
	// What could not be read was said to be corrupt.
	"javascript/run": {{only: regexp.MustCompile(`^openat .*/trees/guest/.*/freeze\.js$`)}},
	// The program was blamed; a plan without the package was kept.
	"javascript/children of install": {{only: regexp.MustCompile(`^openat .*/lock\.json$`)}, {only: regexp.MustCompile(`^readlink .*/stage/npm/[0-9]+$`)}},
	"typescript/children of install": {{only: regexp.MustCompile(`^read .*/stage/remote/`), variant: 1}},
	// The program ran without the package.
	"python/install": {{only: regexp.MustCompile(`^openat cache/locks/`), onward: &diskFull}},
	// So did it here; and what was not ready was closed, which panicked.
	"python/run": {{only: regexp.MustCompile(`^openat cache/index/(plan|index)/`), onward: &tooManyFiles}, {only: regexp.MustCompile(`^openat .*/pyodide-lock\.json$`), at: 2}},
}

func (s sweep) seen(t *testing.T) []injection {
	_, name, _ := strings.Cut(t.Name(), "/")
	seen := slices.Clone(seenFaults[strings.ReplaceAll(name, "_", " ")])
	for i := range seen {
		seen[i].at, seen[i].children = max(seen[i].at, 1), s.children
	}
	return seen
}

// chosen are some of the ways to fail, or all: at each place in each way that the
// call there knows, once, or with all that come after it as on a full disk.
func (s sweep) chosen(places []int) []injection {
	ways := []injection{{variant: 0}, {variant: 1}, {variant: 2}, {onward: &diskFull}, {onward: &tooManyFiles}}
	var all []injection
	for _, at := range places {
		for _, way := range ways {
			way.at, way.children = at, s.children
			all = append(all, way)
		}
	}
	most := 1
	switch set := os.Getenv(faultsEnv); set {
	case "":
	case "all":
		return all
	default:
		most, _ = strconv.Atoi(set)
	}
	random := rand.New(rand.NewPCG(1, 2))
	chosen := make([]injection, min(most, len(places)))
	for i := range chosen { // spread over the places, and over the ways, also where each sweep has one
		from, to := i*len(places)/len(chosen), (i+1)*len(places)/len(chosen)
		chosen[i] = all[(from+random.IntN(to-from))*len(ways)+(i+len(places))%len(ways)]
	}
	return chosen
}

func (s sweep) once(t *testing.T, in injection) {
	t.Helper()
	place := newFaultPlace(t, s.from, s.env)
	before := place.entries()
	got := place.watched(in, s.command)
	report := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%v (%d): "+format, append([]any{got.failed, in.at}, args...)...)
	}
	if len(got.failed) == 0 {
		if in.only != nil {
			report("nothing matches %v", in.only)
		}
		place.remove()
		return // it did less this time
	}
	if testing.Verbose() {
		t.Logf("%v (%d): status %d, %q", got.failed, in.at, got.status, got.stderr)
	}
	switch {
	case strings.Contains(got.stderr, "goroutine ") || strings.Contains(got.stderr, "panic:"):
		report("it shows its own stack:\n%s", got.stderr)
	case strings.Contains(got.stderr, "corrupt"):
		report("it says that something is corrupt, which nothing is: %s", got.stderr)
	case got.status == 0 && got.stdout == s.want:
	case got.status == statusBroken && strings.HasPrefix(s.want, got.stdout) && clearError.MatchString(got.stderr):
	default:
		report("it ends with %d, prints %q and says %q", got.status, got.stdout, got.stderr)
	}
	after := place.watched(injection{}, s.next)
	if after.status != 0 && (got.status != 0 || strings.Contains(got.stderr, "WRN")) { // it was not installed, and that was said
		place.must(s.command...)
		after = place.watched(injection{}, s.next)
	}
	if after.status != 0 || after.stdout != s.nextWant {
		report("afterwards, it ends with %d, prints %q and says %q", after.status, after.stdout, after.stderr)
	}
	if strings.Contains(after.stderr, "WRN") {
		report("afterwards, it warns: %s", after.stderr)
	}
	left := place.entries()
	for _, entry := range before {
		if !slices.Contains(left, entry) {
			report("%s is lost", entry)
		}
	}
	verify := exec.CommandContext(t.Context(), "rillbox", "cache", "verify")
	verify.Env = place.env
	if out, err := verify.CombinedOutput(); err != nil || !strings.Contains(string(out), " 0 corrupt") {
		report("the cache holds what it should not: %v %s", err, out)
	}
	place.remove()
}

// clearError is an error of ours that names what failed.
var clearError = regexp.MustCompile(`(?is)rillbox: .*(no space left on device|input/output error|too many open files|unexpected end|unexpected EOF|failed caching|failed reading|try again|error while loading shared libraries)`)

// placesOf gives where operations stand: of those that are the same the first, one
// between, and the last.
func placesOf(seen []operation) []int {
	same := map[string][]int{}
	for i, o := range seen {
		o.path = randomName.ReplaceAllString(o.path, "*")
		same[o.String()] = append(same[o.String()], i+1)
	}
	var at []int
	for _, all := range same {
		at = append(at, all[0], all[len(all)/2], all[len(all)-1])
	}
	slices.Sort(at)
	return slices.Compact(at)
}

var randomName = regexp.MustCompile(`[A-Z2-7]{26}|[0-9]{5,}`)

// A faultPlace is a cache with a directory for temporary files, at one root.
type faultPlace struct {
	t           *testing.T
	root, cache string
	env         []string
}

// newFaultPlace makes a place with a copy of a cache; without one, of the shared
// cache's runtimes.
func newFaultPlace(t *testing.T, from string, env []string) *faultPlace {
	t.Helper()
	root, err := os.MkdirTemp(t.TempDir(), "place")
	if err != nil {
		t.Fatal(err)
	}
	p := &faultPlace{t: t, root: root, cache: filepath.Join(root, "cache")}
	to := p.cache
	if from == "" {
		shared, err := cachetest.Dir()
		if err != nil {
			t.Fatal(err)
		}
		from, to = filepath.Join(shared, "trees", "runtime"), filepath.Join(p.cache, "trees", "runtime")
	}
	copyCache(t, to, from)
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.env = slices.Concat(os.Environ(), scriptEnvironment(t, t.TempDir()), env,
		[]string{"RILLBOX_CACHE_DIR=" + p.cache, "TMPDIR=" + filepath.Join(root, "tmp")})
	return p
}

// remove spares the disk until the test ends.
func (p *faultPlace) remove() {
	if err := os.RemoveAll(p.root); err != nil {
		p.t.Error(err)
	}
}

func (p *faultPlace) watched(in injection, command []string) watched {
	p.t.Helper()
	in.root = p.root
	return runWatched(p.t, p.env, in, command...)
}

// must runs a command that works, to the end of all that it starts.
func (p *faultPlace) must(command ...string) string {
	p.t.Helper()
	got := p.watched(injection{}, command)
	if got.status != 0 {
		p.t.Fatalf("%q ends with %d and says %s%s", command, got.status, got.stdout, got.stderr)
	}
	return got.stdout
}

var entryPattern = regexp.MustCompile(`^(index|trees)/[^/]+/[^/]+$|^deno/.*/(registry\.json|package\.json)$|^deno/remote/.*/.*/.`)

// entries names what the cache holds.
func (p *faultPlace) entries() []string {
	var found []string
	err := filepath.WalkDir(p.cache, func(path string, _ fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(p.cache, path); entryPattern.MatchString(rel) {
			found = append(found, rel)
		}
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}

// copyCache copies a cache. Large files, which nothing ever writes to, are linked.
func copyCache(t *testing.T, to, from string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Size() > 1<<20 && os.Link(path, target) == nil {
			return nil
		}
		content, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(target, content, info.Mode().Perm())
		}
		if err == nil {
			err = os.Chtimes(target, info.ModTime(), info.ModTime())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// openShop serves one package for each language, on loopback, and returns the
// environment that leads there.
func openShop(t *testing.T) (env []string) {
	t.Helper()
	files := map[string][]byte{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, found := files[r.URL.Path]
		switch {
		case !found:
			http.NotFound(w, r)
			return
		case strings.HasPrefix(r.URL.Path, "/simple/"):
			w.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
		case strings.HasSuffix(r.URL.Path, ".ts"):
			w.Header().Set("Content-Type", "application/typescript")
		}
		_, _ = w.Write(content)
	}))
	t.Cleanup(s.Close)
	encode := func(value any) []byte {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	type object = map[string]any

	var archive bytes.Buffer
	packed := gzip.NewWriter(&archive)
	tarball := tar.NewWriter(packed)
	for _, file := range [][2]string{
		{"package.json", `{"name":"left","version":"1.0.0","main":"left.js"}`},
		{"left.js", `module.exports = (s) => "*" + s;`},
	} {
		err := tarball.WriteHeader(&tar.Header{Name: "package/" + file[0], Mode: 0o644, Size: int64(len(file[1]))})
		if err == nil {
			_, err = tarball.Write([]byte(file[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := tarball.Close(); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	signed := sha512.Sum512(archive.Bytes())
	files["/npm/left/-/left-1.0.0.tgz"] = archive.Bytes()
	files["/npm/left"] = encode(object{"name": "left", "dist-tags": object{"latest": "1.0.0"}, "versions": object{"1.0.0": object{
		"name": "left", "version": "1.0.0", "main": "left.js",
		"dist": object{"tarball": s.URL + "/npm/left/-/left-1.0.0.tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(signed[:])},
	}}})

	module := []byte(`export function right(s: string): string { return s + "*"; }`)
	files["/jsr/@some/right/1.0.0/mod.ts"] = module
	files["/jsr/@some/right/meta.json"] = encode(object{"versions": object{"1.0.0": object{}}, "latest": "1.0.0"})
	files["/jsr/@some/right/1.0.0_meta.json"] = encode(object{
		"manifest": object{"/mod.ts": object{"size": len(module), "checksum": "sha256-" + digest(module)}},
		"exports":  object{".": "./mod.ts"},
	})

	var wheel bytes.Buffer
	zipped := zip.NewWriter(&wheel)
	for _, file := range [][2]string{
		{"middle/__init__.py", "def between(s): return '*' + s + '*'\n"},
		{"middle-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: middle\nVersion: 1.0\n"},
		{"middle-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"middle-1.0.dist-info/RECORD", ""},
	} {
		w, err := zipped.Create(file[0])
		if err == nil {
			_, err = w.Write([]byte(file[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	const name = "middle-1.0-py3-none-any.whl"
	files["/files/"+name] = wheel.Bytes()
	files["/simple/middle/"] = encode(object{"meta": object{"api-version": "1.1"}, "name": "middle", "files": []object{
		{"filename": name, "url": s.URL + "/files/" + name, "hashes": object{"sha256": digest(wheel.Bytes())}},
	}})
	return []string{
		"NPM_CONFIG_REGISTRY=" + s.URL + "/npm/", "JSR_URL=" + s.URL + "/jsr/", "RILLBOX_INDEX_URL=" + s.URL + "/simple/",
		"NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1",
	}
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
