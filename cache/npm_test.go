package cache

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"rillbox/cache/egress"
)

// registry serves one package as npm's registry does, and remembers who asked.
type registry struct {
	url     string
	tarball []byte
	silent  bool   // it does not tell where the tarball is
	token   string // it asks for this

	mu    sync.Mutex
	paths []string
}

func newRegistry(t *testing.T, name, version string, tarball []byte) *registry {
	r := &registry{tarball: tarball}
	base := name[strings.LastIndex(name, "/")+1:]
	file := "/repo/" + name + "/-/" + base + "-" + version + ".tgz"
	r.url = serve(t, func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.paths = append(r.paths, req.URL.EscapedPath())
		r.mu.Unlock()
		if r.token != "" && req.Header.Get("Authorization") != "Bearer "+r.token {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		switch req.URL.EscapedPath() {
		case "/repo/" + strings.ReplaceAll(name, "/", "%2f") + "/" + version:
			if r.silent {
				http.NotFound(w, req)
				return
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"dist": map[string]string{"tarball": "http://" + req.Host + "/elsewhere.tgz"}})
		case "/elsewhere.tgz":
			_, _ = w.Write(r.tarball)
		case file:
			_, _ = w.Write(r.tarball)
		default:
			http.NotFound(w, req)
		}
	}) + "/repo/"
	return r
}

// cleanNPM hides the machine's own npm configuration and returns an empty home.
func cleanNPM(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(strings.ToLower(name), "npm_config_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("HOME", home)
	t.Setenv("NPM_CONFIG_GLOBALCONFIG", filepath.Join(home, "global"))
	return home
}

func TestTheMachinesNPMConfigurationIsObeyed(t *testing.T) {
	tarball := tgz(t, member{name: "package/file", text: "hello"})
	tests := map[string]struct {
		name      string
		configure func(t *testing.T, home, url string, r *registry)
	}{
		"the environment": {configure: func(t *testing.T, home, url string, _ *registry) { t.Setenv("NPM_CONFIG_REGISTRY", url) }},
		"its lower-case form, without a slash": {configure: func(t *testing.T, home, url string, _ *registry) {
			t.Setenv("npm_config_registry", strings.TrimRight(url, "/"))
		}},
		"the user's npmrc": {configure: func(t *testing.T, home, url string, _ *registry) {
			overwrite(t, filepath.Join(home, ".npmrc"), "; mine\nfund=false\nregistry = "+url+"\n")
		}},
		"the machine's npmrc": {configure: func(t *testing.T, home, url string, _ *registry) {
			overwrite(t, filepath.Join(home, "global"), `registry="`+url+`"`)
		}},
		"a scope's registry": {name: "@scope/pkg", configure: func(t *testing.T, home, url string, _ *registry) {
			overwrite(t, filepath.Join(home, ".npmrc"), "registry=http://wrong.invalid/\n@scope:registry="+url+"\n")
		}},
		"npm itself": {configure: func(t *testing.T, home, url string, _ *registry) {
			bin := t.TempDir()
			must(t, os.WriteFile(filepath.Join(bin, "npm"), []byte("#!/bin/sh\n[ \"$*\" = 'config get registry' ] && echo "+url+"\n"), 0o700))
			t.Setenv("PATH", bin)
		}},
		"a registry that does not tell the tarball's place": {name: "@scope/pkg", configure: func(t *testing.T, home, url string, r *registry) {
			r.silent = true
			t.Setenv("NPM_CONFIG_REGISTRY", url)
		}},
		"a token": {configure: func(t *testing.T, home, url string, r *registry) {
			r.token, r.silent = "secret", true
			t.Setenv("MY_TOKEN", "secret")
			overwrite(t, filepath.Join(home, ".npmrc"), "registry="+url+"\n"+strings.TrimPrefix(url, "http:")+":_authToken=${MY_TOKEN}\n")
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.name == "" {
				test.name = "pkg"
			}
			r := newRegistry(t, test.name, "1.2.3", tarball)
			test.configure(t, cleanNPM(t), r.url, r)
			c := open(t, t.TempDir(), Options{})
			dir := filepath.Join(t.TempDir(), "d")
			err := c.NPM(test.name, "1.2.3", egress.Source{SHA512: sha512Hex(tarball)}).Fetch(t.Context(), dir, nil)
			if err != nil {
				t.Fatalf("%v; asked for %q", err, r.paths)
			}
			if text := mustRead(t, filepath.Join(dir, "package", "file")); text != "hello" {
				t.Errorf("got %q", text)
			}
		})
	}
}

func TestATokenGoesToItsRegistryOnly(t *testing.T) {
	home := cleanNPM(t)
	overwrite(t, filepath.Join(home, ".npmrc"), "//host.example/repo/:_authToken=secret\n//basic.example/:_auth=dTpw\n")
	conf := readNPMConfig()
	for url, want := range map[string]string{
		"https://host.example/repo/pkg/-/pkg-1.tgz": "Bearer secret",
		"https://host.example/repo/":                "Bearer secret",
		"https://host.example/other/pkg":            "",
		"https://other.example/repo/pkg":            "",
		"https://basic.example/pkg":                 "Basic dTpw",
	} {
		if got := conf.auth(url).Get("Authorization"); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

func TestWithoutARegistryTheErrorSaysWhatToDo(t *testing.T) {
	cleanNPM(t)
	t.Setenv("PATH", t.TempDir())
	if readNPMConfig().get("registry") != "" {
		t.Skip("this machine's npmrc names a registry")
	}
	c := open(t, t.TempDir(), Options{})
	err := c.NPM("pkg", "1", egress.Source{}).Fetch(t.Context(), filepath.Join(t.TempDir(), "d"), nil)
	if err == nil || !strings.Contains(err.Error(), "NPM_CONFIG_REGISTRY") {
		t.Errorf("err %v", err)
	}
}
