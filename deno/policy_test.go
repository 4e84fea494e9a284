//go:build !windows

package deno_test

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rillbox/cache/cachetest"
	"rillbox/cache/egress"
	"rillbox/deno"
	"rillbox/deno/modules"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
)

func withPolicy(p egress.Policy) func(*deno.Options) {
	return func(o *deno.Options) { o.Policy = p }
}

// release publishes a version of an npm package beside the earlier ones, with
// the time of its release unless that is zero.
func (r *registry) release(t *testing.T, name, version string, files map[string]string, released time.Time) {
	t.Helper()
	type page struct {
		Name     string            `json:"name"`
		Tags     map[string]string `json:"dist-tags"`
		Versions map[string]any    `json:"versions"`
		Time     map[string]string `json:"time,omitempty"`
	}
	read := func() (p page) {
		if text, ok := r.files["/npm/"+name]; ok {
			if err := json.Unmarshal(text, &p); err != nil {
				t.Fatal(err)
			}
		}
		return p
	}
	old := read()
	r.npm(t, name, version, files)
	merged := read()
	for version, manifest := range old.Versions {
		merged.Versions[version] = manifest
	}
	if merged.Time = old.Time; merged.Time == nil {
		merged.Time = map[string]string{}
	}
	if !released.IsZero() {
		merged.Time[version] = released.UTC().Format(time.RFC3339)
	}
	text, err := json.Marshal(merged)
	if err != nil {
		t.Fatal(err)
	}
	r.files["/npm/"+name] = text
}

// refused checks that a program did not run because of its packages.
func refused(t *testing.T, what string, got job.Result, wants ...string) {
	t.Helper()
	if got.Status != job.Failed || got.Error == nil || got.Error.Name != "PackageError" || len(got.Stdout.Head) > 0 {
		t.Errorf("%s: have %s, stdout %q, %+v", what, got.Status, got.Stdout, got.Error)
		return
	}
	for _, want := range wants {
		if !strings.Contains(got.Error.Message, want) {
			t.Errorf("%s: have %q, want %q in it", what, got.Error.Message, want)
		}
	}
}

func TestDeniedPackagesAreRefused(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	t.Setenv("JSR_URL", r.URL+"/")
	r.npm(t, "left", "1.0.0", map[string]string{"package.json": `{"name":"left","version":"1.0.0","dependencies":{"evil":"*"}}`, "index.js": `module.exports = require("evil")`})
	r.npm(t, "evil", "1.0.0", map[string]string{"package.json": `{"name":"evil","version":"1.0.0"}`, "index.js": `module.exports = "evil"`})
	r.npm(t, "right", "1.0.0", map[string]string{"package.json": `{"name":"right","version":"1.0.0"}`, "index.js": `module.exports = "right"; module.exports.here = __filename`})
	shared, err := cachetest.Dir()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(cachetest.DirEnv, shared) // which may be below the home directory
	home := t.TempDir()                // Deno has a registry of its own for the scope
	if err := os.WriteFile(filepath.Join(home, ".npmrc"), []byte("@jsr:registry="+r.URL+"/npm/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	r.npm(t, "@jsr/bad__thing", "1.0.0", map[string]string{"package.json": `{"name":"@jsr/bad__thing","version":"1.0.0"}`, "index.js": `module.exports = "bad"`})
	r.npm(t, "uses-jsr", "1.0.0", map[string]string{"package.json": `{"name":"uses-jsr","version":"1.0.0","dependencies":{"@jsr/bad__thing":"1"}}`, "index.js": `module.exports = require("@jsr/bad__thing")`})
	r.npm(t, "by-alias", "1.0.0", map[string]string{"package.json": `{"name":"by-alias","version":"1.0.0","dependencies":{"good":"npm:evil@1"}}`, "index.js": `module.exports = require("good")`})
	r.npm(t, "jsr-by-alias", "1.0.0", map[string]string{"package.json": `{"name":"jsr-by-alias","version":"1.0.0","dependencies":{"good":"npm:@jsr/bad__thing@1"}}`, "index.js": `module.exports = require("good")`})
	r.jsr(t, "@bad/thing", "1.0.0", `export default "bad"`)
	for _, path := range []string{"/bundle", "/;evil", "/evil&x"} {
		r.files[path+".ts"] = []byte(`export default "evil"`)
	}
	r.jsr(t, "@good/thing", "1.0.0", `export default "good"`)
	r.files["/evil@1/mod.ts"] = []byte(`export default "evil"`)
	r.files["/lib/mod.ts"] = []byte(`import evil from "../evil@1/mod.ts"; export default evil`)
	r.files["/lib/good.ts"] = []byte(`export default "good"`)

	policy := egress.Policy{Deny: []string{"evil", "jsr:@bad/*"}}
	imports := func(o *deno.Options) { o.AllowImport = []string{r.host()} }
	const evil = `the operator denied package "evil": the list of denied ones has "evil"`
	rows := []struct {
		name    string
		program job.Program
		want    []string
	}{
		{"bare import", job.Program{Code: `console.log(1); import "evil"`}, []string{evil}},
		{"npm: import", job.Program{Code: `console.log(1); import "npm:evil@1"`}, []string{evil}},
		{"another case", job.Program{Code: `console.log(1); import "npm:EVIL@1"`}, []string{evil}},
		{"dynamic import", job.Program{Code: `console.log(1); await import("evil/x.js")`}, []string{evil}},
		{"require", job.Program{Language: job.JavaScript, Code: `console.log(1); require("evil")`}, []string{evil}},
		{"packages", job.Program{Code: `console.log(1)`, Packages: []string{"evil@1"}}, []string{evil}},
		{"transitive", job.Program{Code: `console.log(1); import "left"`}, []string{evil, "left needs it"}},
		{"jsr:", job.Program{Code: `console.log(1); import "jsr:@bad/thing"`}, []string{`the operator denied package "@bad/thing"`}},
		{"jsr by URL", job.Program{Code: `console.log(1); import "` + r.URL + `/@bad/thing/1.0.0/mod.ts"`}, []string{"the operator denied URL", "@bad/thing"}},
		{"URL that names it", job.Program{Code: `console.log(1); import "` + r.URL + `/evil@1/mod.ts"`}, []string{"the operator denied URL", "/evil@1/mod.ts"}},
		{"jsr by npm", job.Program{Code: `console.log(1); import "npm:@jsr/bad__thing"`}, []string{`the operator denied package "@jsr/bad__thing": the list of denied ones has "jsr:@bad/*"`}},
		{"jsr by npm, bare", job.Program{Code: `console.log(1); import "@jsr/bad__thing"`}, []string{`the operator denied package "@jsr/bad__thing"`}},
		{"jsr by npm, transitive", job.Program{Code: `console.log(1); import "uses-jsr"`}, []string{`the operator denied package "@jsr/bad__thing"`, "uses-jsr needs it"}},
		{"by an alias", job.Program{Code: `console.log(1); import "by-alias"`}, []string{evil}},
		{"jsr by an alias", job.Program{Code: `console.log(1); import "jsr-by-alias"`}, []string{`the operator denied package "@jsr/bad__thing"`}},
		{"URL whose query names it", job.Program{Code: `console.log(1); import "` + r.URL + `/bundle.ts?deps=evil@1"`}, []string{"the operator denied URL", "deps=evil"}},
		{"URL that names it after a semicolon", job.Program{Code: `console.log(1); import "` + r.URL + `/;evil.ts?x=;evil"`}, []string{"the operator denied URL"}},
		{"URL that names it before an ampersand", job.Program{Code: `console.log(1); import "` + r.URL + `/evil&x.ts"`}, []string{"the operator denied URL"}},
		{"URL that may name anything", job.Program{Code: `console.log(1); import "` + r.URL + `/bundle.ts?deps=%2565vil"`}, []string{"the operator denied URL", "can't be told"}},
		{"URL that leads there", job.Program{Code: `console.log(1); import "` + r.URL + `/lib/mod.ts"`}, []string{"the operator denied URL", "/evil@1/mod.ts"}},
	}
	dir := t.TempDir()
	for _, state := range []string{"never fetched", "all in the cache"} {
		denying := newEngine(t, "", ownCache(t, dir, false), imports, withPolicy(policy))
		for _, row := range rows {
			refused(t, state+", "+row.name, run(t, denying, row.program), row.want...)
		}
		if _, err := denying.Install(t.Context(), job.Program{Packages: []string{"left"}}, ignore); err == nil || !strings.Contains(err.Error(), evil) {
			t.Errorf("%s: installing: %v", state, err)
		}
		if state == "never fetched" {
			if asked := r.asked["/npm/evil/-/evil-1.0.0.tgz"]; asked > 1 { // once, to find out what left needs
				t.Errorf("the denied package was fetched %d times", asked)
			}
			lax := newEngine(t, "", ownCache(t, dir, false), imports)
			for _, row := range rows {
				if row.name == "another case" { // another name
					continue
				}
				if got := run(t, lax, row.program); got.Error != nil && got.Error.Name == "PackageError" {
					t.Errorf("without a policy, %s: %+v", row.name, got.Error)
				}
			}
		}
	}

	// A client's own policy is as good as the operator's, with all in the cache.
	own := job.PackagePolicy{DenyPackages: policy.Deny}
	everybodys := newEngine(t, "", ownCache(t, dir, false), imports)
	for _, row := range rows {
		row.program.Policy = own
		refused(t, "a client's own, "+row.name, run(t, everybodys, row.program), row.want...)
	}
	if _, err := everybodys.Install(t.Context(), job.Program{Packages: []string{"left"}, Policy: own}, ignore); err == nil || !strings.Contains(err.Error(), evil) {
		t.Errorf("a client's own: installing: %v", err)
	}

	// What is allowed still works, and nothing that the program makes up leads
	// to what lies in the cache for others.
	files := glob(t, filepath.Join(dir, "deno/npm/*/npm/evil/1.0.0/index.js"), filepath.Join(dir, "deno/npm/*/evil/1.0.0/index.js"))
	if len(files) != 1 {
		t.Fatalf("the denied package is not where it is looked for: %q", files)
	}
	code := `import { createRequire } from "node:module";
		import right from "right"; import good from "jsr:@good/thing"; import url from "` + r.URL + `/lib/good.ts";
		const tries = [];
		for (const name of ["npm:evil", "evil", "jsr:@bad/thing", "` + r.URL + `/evil@1/mod.ts", "file://` + files[0] + `"]) {
			tries.push(await import(name).then((m) => m.default, () => "refused"));
		}
		const require = createRequire(right.here ?? import.meta.url);
		for (const name of ["evil", "../../evil/1.0.0/index.js", "` + files[0] + `"]) {
			try { tries.push(require(name)) } catch { tries.push("refused") }
		}
		export default [good, url, ...tries];`
	allowed := `"good","good"`
	r.npm(t, "right", "1.0.0", map[string]string{"package.json": `{"name":"right","version":"1.0.0"}`, "index.js": `exports.here = __filename`})
	open := newEngine(t, "", ownCache(t, dir, false), imports)
	asked := run(t, open, job.Program{Code: code, Packages: []string{"evil", "jsr:@bad/thing", r.URL + "/evil@1/mod.ts"}})
	if !strings.HasPrefix(string(asked.Value), "["+allowed+`,"evil","evil","bad","evil","refused","evil"`) {
		t.Errorf("the tries are none: where all was asked for they gave %s %+v", asked.Value, asked.Error)
	}
	if unasked := run(t, open, job.Program{Code: code}); string(unasked.Value) != "["+allowed+strings.Repeat(`,"refused"`, 8)+"]" {
		t.Errorf("what others asked for is there: have %s %+v", unasked.Value, unasked.Error)
	}
	if held := run(t, open, job.Program{Code: code, Policy: own}); string(held.Value) != "["+allowed+strings.Repeat(`,"refused"`, 8)+"]" {
		t.Errorf("with a client's own: have %s %+v", held.Value, held.Error)
	}
	held := run(t, newEngine(t, "", ownCache(t, dir, false), imports, withPolicy(policy)), job.Program{Code: code})
	if want := "[" + allowed + strings.Repeat(`,"refused"`, 8) + "]"; string(held.Value) != want {
		t.Errorf("with the policy: have %s %+v, want %s", held.Value, held.Error, want)
	}
}

func TestOnlyAllowedPackagesAndRegistries(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	r.npm(t, "left", "1.0.0", map[string]string{"package.json": `{"name":"left","version":"1.0.0"}`, "index.js": `module.exports = "left"`})
	r.npm(t, "right", "1.0.0", map[string]string{"package.json": `{"name":"right","version":"1.0.0"}`, "index.js": `module.exports = "right"`})
	r.files["/mod.ts"] = []byte(`export default 1`)
	dir := t.TempDir()
	imports := func(o *deno.Options) { o.AllowImport = []string{r.host()} }
	for _, row := range []struct {
		policy egress.Policy
		code   string
		want   string // "" means that it runs
	}{
		{egress.Policy{Allow: []string{"left"}}, `import x from "left"`, ""},
		{egress.Policy{Allow: []string{"left"}}, `import x from "right"`, `the operator denied package "right": it is not among the allowed ones`},
		{egress.Policy{Allow: []string{"npm:l*"}}, `import x from "left"`, ""},
		{egress.Policy{Allow: []string{"python:left"}}, `import x from "left"`, `the operator denied package "left"`},
		{egress.Policy{Allow: []string{"left"}}, `import x from "` + r.URL + `/mod.ts"`, `the operator denied host "127.0.0.1"`},
		{egress.Policy{Allow: []string{"host:127.0.0.1"}}, `import x from "` + r.URL + `/mod.ts"; import y from "right"`, ""},
		{egress.Policy{Allow: []string{"host:npm.test"}}, `import x from "right"`, `the operator denied package "right"`},
		{egress.Policy{Deny: []string{"host:127.0.0.1"}}, `import x from "right"`, `the operator denied host "127.0.0.1"`},
		{egress.Policy{Deny: []string{"host:127.*"}}, `import x from "` + r.URL + `/mod.ts"`, `the operator denied host "127.0.0.1"`},
		{egress.Policy{Deny: []string{"*"}}, `import x from "node:path"; console.log(x.sep)`, ""},
	} {
		got := run(t, newEngine(t, "", ownCache(t, dir, false), imports, withPolicy(row.policy)), job.Program{Code: row.code})
		switch {
		case row.want != "":
			refused(t, row.code, got, row.want)
		case got.Status != job.Completed:
			t.Errorf("%+v %s: %s %+v", row.policy, row.code, got.Status, got.Error)
		}
	}
	if _, err := deno.New(deno.Options{Policy: egress.Policy{Deny: []string{"["}}}); err == nil {
		t.Error("a malformed glob passed")
	}
}

func TestFetchingTurnedOff(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	r.npm(t, "left", "1.0.0", map[string]string{"package.json": `{"name":"left","version":"1.0.0"}`, "index.js": `module.exports = "left"`})
	r.npm(t, "right", "1.0.0", map[string]string{"package.json": `{"name":"right","version":"1.0.0"}`, "index.js": ``})
	dir := t.TempDir()
	if got := run(t, newEngine(t, "", ownCache(t, dir, false)), job.Program{Code: `import "left"`}); got.Error != nil {
		t.Fatal(got.Error)
	}
	asked := r.requests()
	off := newEngine(t, "", ownCache(t, dir, false), withPolicy(egress.Policy{NoFetch: true}))
	if got := run(t, off, job.Program{Code: `import x from "left"; export default x`}); string(got.Value) != `"left"` {
		t.Errorf("what is in the cache: %+v", got.Error)
	}
	refused(t, "what is not", run(t, off, job.Program{Code: `console.log(1); import "right"`}), "npm:right is not in the cache, and the operator turned fetching off")
	if r.requests() != asked {
		t.Error("the registry was asked")
	}
}

func TestMinimumReleaseAge(t *testing.T) {
	r := newRegistry(t)
	useNPM(t, r)
	t.Setenv("JSR_URL", r.URL+"/")
	now := time.Now()
	const day = 24 * time.Hour
	// The order matters: what is released last is what the registry calls the latest.
	for _, left := range []struct {
		version string
		age     time.Duration
	}{{"1.0.0", 30 * day}, {"1.1.0", 5 * day}} {
		r.release(t, "left", left.version, map[string]string{"package.json": `{"name":"left","version":"` + left.version + `","dependencies":{"deep":"*"}}`, "index.js": `module.exports = "` + left.version + `/" + require("deep")`}, now.Add(-left.age))
	}
	for _, deep := range []struct {
		version string
		age     time.Duration
	}{{"2.0.0", 30 * day}, {"2.1.0", 5 * day}} {
		r.release(t, "deep", deep.version, map[string]string{"package.json": `{"name":"deep","version":"` + deep.version + `"}`, "index.js": `module.exports = "` + deep.version + `"`}, now.Add(-deep.age))
	}
	r.release(t, "untold", "1.0.0", map[string]string{"package.json": `{"name":"untold","version":"1.0.0"}`, "index.js": ``}, time.Time{})
	r.files["/mod.ts"] = []byte(`export default 1`)

	dir := t.TempDir()
	imports := func(o *deno.Options) { o.AllowImport = []string{r.host()} }
	aged := func(age time.Duration) *deno.Engine {
		return newEngine(t, "", ownCache(t, dir, false), imports, withPolicy(egress.Policy{MinReleaseAge: age}))
	}
	program := job.Program{Code: `import x from "left"; export default x`}
	for _, row := range []struct {
		age  time.Duration
		want string
	}{{0, "1.1.0/2.1.0"}, {7 * day, "1.0.0/2.0.0"}, {time.Hour, "1.1.0/2.1.0"}, {7 * day, "1.0.0/2.0.0"}} {
		if got := run(t, aged(row.age), program); string(got.Value) != `"`+row.want+`"` {
			t.Errorf("older than %v: have %s %+v, want %s", row.age, got.Value, got.Error, row.want)
		}
	}
	for code, want := range map[string]string{
		`import "npm:left@1.1.0"`:       `the npm package "left" has no version that matches "1.1.0" and is older than 168h0m0s`,
		`import "npm:untold"`:           "the registry does not tell when untold 1.0.0 was released",
		`import "` + r.URL + `/mod.ts"`: "minimum release age, which a URL such as",
	} {
		refused(t, code, run(t, aged(7*day), job.Program{Code: "console.log(1);" + code}), want)
	}
	refused(t, "all too young", run(t, aged(100*day), program), "min_release_age")
}

// fetched serves one module and counts who asks.
func fetched(t *testing.T, address string) (*httptest.Server, *atomic.Int32) {
	t.Helper()
	var asked atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/typescript")
		_, _ = w.Write([]byte(`export default "inside"`))
	}))
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("cannot listen on %s: %v", address, err)
	}
	s.Listener.Close()
	s.Listener = listener
	s.Start()
	t.Cleanup(s.Close)
	return s, &asked
}

func TestNothingPrivateIsFetchedForAProgram(t *testing.T) {
	t.Setenv("NO_PROXY", "*")
	inside, asked := fetched(t, "127.0.0.1:0")
	_, port, _ := net.SplitHostPort(inside.Listener.Addr().String())
	redirect := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.TrimPrefix(r.URL.Path, "/"), http.StatusFound)
	}))
	t.Cleanup(redirect.Close)
	redirecting := strings.TrimPrefix(redirect.URL, "http://")
	anything, err := permission.Parse([]string{"--allow-import"})
	if err != nil {
		t.Fatal(err)
	}
	engine := func(named ...string) *deno.Engine {
		return newEngine(t, "", ownCache(t, t.TempDir(), false), func(o *deno.Options) { o.Permissions, o.AllowImport = anything, named })
	}
	const private = "private or reserved address"
	for _, row := range []struct{ name, address string }{
		{"loopback", "http://127.0.0.1:" + port + "/x.ts"},
		{"loopback over TLS", "https://127.0.0.1:" + port + "/x.ts"},
		{"a name for it", "http://localhost:" + port + "/x.ts"},
		{"a redirect, in decimal", redirect.URL + "/http://2130706433:" + port + "/x.ts"},
		{"a redirect, in hexadecimal", redirect.URL + "/http://0x7f.1:" + port + "/x.ts"},
		{"a redirect, shortened", redirect.URL + "/http://127.1:" + port + "/x.ts"},
		{"unspecified", "http://0.0.0.0:" + port + "/x.ts"},
		{"as IPv6", "http://[::ffff:127.0.0.1]:" + port + "/x.ts"},
		{"IPv6 loopback", "http://[::1]:" + port + "/x.ts"},
		{"metadata", "http://169.254.169.254/x.ts"},
		{"metadata over TLS", "https://169.254.169.254/x.js"},
		{"metadata, IPv6", "http://[fd00:ec2::254]/x.ts"},
		{"private", "https://10.0.0.1/x.ts"},
		{"a redirect", redirect.URL + "/http://localhost:" + port + "/x.ts"},
		{"a redirect to metadata", redirect.URL + "/http://169.254.169.254/x.ts"},
	} {
		t.Run(row.name, func(t *testing.T) {
			start := time.Now()
			got := run(t, engine(redirecting), job.Program{Code: `console.log(1); import "` + row.address + `"`})
			refused(t, row.address, got, private, "allow_import")
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
	if asked.Load() != 0 {
		t.Errorf("the inside was asked %d times", asked.Load())
	}
	t.Run("unless the operator names it", func(t *testing.T) {
		program := job.Program{Code: `import x from "http://localhost:` + port + `/x.ts"; export default x`}
		if got := run(t, engine("localhost:"+port), program); string(got.Value) != `"inside"` {
			t.Errorf("have %+v", got.Error)
		}
		refused(t, "by a wildcard", run(t, engine("*.localhost"), program), private)
	})
}

func TestImportsStayOnTheListOfHosts(t *testing.T) {
	inside, asked := fetched(t, "127.0.0.1:0")
	other := strings.Replace(inside.URL, "127.0.0.1", "localhost", 1)
	r := newRegistry(t)
	r.files["/import.ts"] = []byte(`import "` + other + `/x.ts"`)
	redirect := httptest.NewServer(http.RedirectHandler(other+"/x.ts", http.StatusFound))
	t.Cleanup(redirect.Close)
	listed := []string{r.host(), strings.TrimPrefix(redirect.URL, "http://")}
	engine := newEngine(t, "", ownCache(t, t.TempDir(), false), func(o *deno.Options) { o.AllowImport = listed })
	byDefault := newEngine(t, "", ownCache(t, t.TempDir(), false))
	for address, e := range map[string]*deno.Engine{
		other + "/x.ts":        engine,
		r.URL + "/import.ts":   engine,
		redirect.URL + "/a.ts": engine,
		inside.URL + "/x.ts":   byDefault,
	} {
		refused(t, address, run(t, e, job.Program{Code: `console.log(1); import "` + address + `"`}), "are not allowed here", "--allow-import", strings.TrimPrefix(inside.URL, "http://127.0.0.1"))
	}
	if asked.Load() != 0 {
		t.Errorf("a host that is not listed was asked %d times", asked.Load())
	}
}

func TestRefusedPackagesAreToldAsPackageErrors(t *testing.T) {
	e := newEngine(t, "", ownCache(t, t.TempDir(), true), withPolicy(egress.Policy{Deny: []string{"evil"}}))
	_, err := e.Install(t.Context(), job.Program{Packages: []string{"evil"}}, ignore)
	var missing *modules.PackageError
	if !errors.As(err, &missing) || egress.IsOffline(err) || !slices.Contains(strings.Fields(err.Error()), "denied") {
		t.Errorf("have %v", err)
	}
}
