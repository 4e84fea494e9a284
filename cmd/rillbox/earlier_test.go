//go:build !windows

package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"

	"rillbox/cache"
	"rillbox/cache/cachetest"
)

// testdata/caches has a cache of each layout that was ever released, as a version of
// its time wrote it when it ran two programs, with packages of a registry and an index
// that are long gone; without runtimes, snapshots and what else is large or made anew
// by each version. testdata/settings has what `rillbox config` printed.

// tinyKept are the programs, and the environment that they had.
var (
	tinyKept = map[string]string{
		"javascript": `import since from "npm:tiny-kept"; console.log(since)`,
		"python":     "import tiny_kept\nprint(tiny_kept.since)",
	}
	tinyKeptEnv = []string{"NPM_CONFIG_REGISTRY=http://127.0.0.1:4873/npm/", "PIP_INDEX_URL=http://127.0.0.1:4873/simple"}
)

// TestCachesOfEarlierVersions: what is in them is used, or is told about by name, and
// it fails nothing else.
func TestCachesOfEarlierVersions(t *testing.T) {
	needRuntimes(t)
	unverified := "npm:tiny-kept: an earlier version of Rillbox left it in the cache without what it takes to verify it; fetch it again"
	for _, row := range []struct {
		name    string
		npm     string // what the program says
		unknown string // what the cache's commands say of modules
	}{
		{"1-deno-directory", unverified, "2 modules that an earlier version fetched can't be verified, and are not used"},
		{"2-views", unverified, "2 modules that an earlier"},
		{"3-images", unverified, "2 modules that an earlier"},
		{"4-roots", unverified, "2 modules that an earlier"},
		{"5-records", "kept since", ""},
		{"6-format-1", "kept since", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "cache")
			unpackCache(t, filepath.Join("testdata/caches", row.name+".tar.gz"), dir)
			format, err := os.ReadFile(filepath.Join(dir, "format"))
			numbered := err == nil
			env := append([]string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "RILLBOX_CACHE_DIR=" + dir}, tinyKeptEnv...)
			run := func(args ...string) string {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), "rillbox", append(args, "--offline")...)
				cmd.Env = env
				out, err := cmd.CombinedOutput()
				said := string(out)
				if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() == statusBroken) ||
					strings.Contains(said, "goroutine") || strings.Contains(said, "corrupt and") {
					t.Errorf("%v ends with %v and says %s", args, err, said)
				}
				return said
			}
			for i, command := range []string{"info", "verify"} {
				said := run("cache", command)
				if want := []string{"wheel", " 0 corrupt"}[i]; !strings.Contains(said, want) || !strings.Contains(said, row.unknown) || row.unknown == "" && strings.Contains(said, "are not used") {
					t.Errorf("cache %s says %s, want %q and %q", command, said, want, row.unknown)
				}
				if told := strings.Contains(said, "an earlier version wrote the cache"); told != (i == 0 && !numbered) {
					t.Errorf("cache %s says %q", command, said)
				}
			}
			lendRuntimes(t, dir)
			t.Run("programs", func(t *testing.T) {
				ask := serveLines(t, append(env, "RILLBOX_OFFLINE=true"))
				for language, want := range map[string]string{"javascript": row.npm, "python": "kept since"} {
					call, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
						"name": "run_code", "arguments": map[string]any{"language": language, "code": tinyKept[language]}}})
					if err != nil {
						t.Fatal(err)
					}
					if said := ask(string(call)); !strings.Contains(said, want) {
						t.Errorf("%s says %s, want %q", language, said, want)
					}
				}
			})
			run("cache", "clear")
			if now, err := os.ReadFile(filepath.Join(dir, "format")); err != nil || numbered && string(now) != string(format) {
				t.Errorf("this version writes the format %q (%v): keep a cache of it here too", now, err)
			}
			if said := run("cache", "info"); !regexp.MustCompile(`^kind +entries +size\nall +0 MiB .*\n$`).MatchString(said) {
				t.Errorf("when it is empty: %s", said)
			}
		})
	}
}

// TestACacheOfALaterVersionIsLeftAlone, and the error says so and what to do.
func TestACacheOfALaterVersionIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	for _, later := range []string{"2", "1000000", "3 with something new", ""} {
		if err := os.WriteFile(filepath.Join(dir, "format"), []byte(later+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"run", "-l", "js", "-c", "1"}, {"cache", "info"}, {"cache", "clear"}, {"setup"}, {"doctor"}} {
			cmd := exec.CommandContext(t.Context(), "rillbox", args...)
			cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "RILLBOX_CACHE_DIR="+dir)
			out, err := cmd.CombinedOutput()
			said := string(out)
			if err == nil || !strings.Contains(said, "a later version of Rillbox wrote it") || !strings.Contains(said, dir) || !strings.Contains(said, "RILLBOX_CACHE_DIR") || strings.Count(said, "\n") != 1 {
				t.Errorf("%q: %v ends with %v and says %s", later, args, err, said)
			}
		}
		if left, err := os.ReadDir(dir); len(left) != 1 {
			t.Errorf("there are %v (%v)", left, err)
		}
	}
}

// TestSettingsOfEarlierVersions: each setting that there ever was is one, in a file,
// in the environment and as a flag; a value that is not taken any more is told about.
func TestSettingsOfEarlierVersions(t *testing.T) {
	files, err := filepath.Glob("testdata/settings/*.toml")
	if len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := load(t, string(text), nil)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		var table map[string]any
		if err := toml.Unmarshal(text, &table); err != nil {
			t.Fatal(err)
		}
		for _, s := range c.settings {
			if _, had := table[s.key]; !had {
				continue
			}
			env := "RILLBOX_" + strings.ToUpper(s.key)
			if strings.HasSuffix(s.key, "_permission_args") {
				env = strings.ToUpper(s.key)
			}
			if _, err := load(t, "", []string{env + "=" + s.value.String()}); err != nil {
				t.Errorf("%s: %s: %v", file, env, err)
			}
			if _, err := load(t, "", nil, "--"+strings.ReplaceAll(s.key, "_", "-")+"="+s.value.String()); err != nil {
				t.Errorf("%s: %s: %v", file, s.key, err)
			}
		}
	}
	for _, row := range []struct {
		file    string
		environ []string
		args    []string
		told    int
	}{
		{`cdn_url = "/srv/old"`, nil, nil, 1},
		{"", []string{"RILLBOX_CDN_URL=/srv/old"}, nil, 1},
		{"", nil, []string{"--cdn-url=/srv/old"}, 0}, // pflag tells
		{"cdn_url = \"/srv/other\"\npyodide_mirror = \"/srv/old\"", nil, nil, 0},
	} {
		c, err := load(t, row.file, row.environ, row.args...)
		if err != nil || c.Engine.Mirror != "/srv/old" || len(c.renamed) != row.told || row.told > 0 && !strings.HasSuffix(strings.ToLower(c.renamed[0]), "pyodide_mirror now") {
			t.Errorf("%+v: %v, mirror %q, told %q", row, err, c.Engine.Mirror, c.renamed)
		}
	}
	for text, want := range map[string]string{
		"warm = 17":          "warm = 17: want",
		`memory = "64KiB"`:   "memory = 64KiB: the least is 16MiB",
		"disk = 0":           "disk = 0: the least is 1MiB",
		"allow_package = []": `unknown key "allow_package"; did you mean allow_packages?`,
	} {
		if _, err := load(t, text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// unpackCache makes dir of an archive, with the times of its files, which the cache
// keeps in its records.
func unpackCache(t *testing.T, archive, dir string) {
	t.Helper()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, h.Name)
		if h.FileInfo().IsDir() {
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		text, err := io.ReadAll(r)
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, h.FileInfo().Mode()), os.Chtimes(path, time.Time{}, h.ModTime)); err != nil {
			t.Fatal(err)
		}
	}
}

// lendRuntimes gives a cache the runtimes and Python's snapshots that the tests' own
// has.
func lendRuntimes(t *testing.T, dir string) {
	t.Helper()
	from := cachetest.Open(t).Dir()
	lend := func(path string, entry fs.DirEntry, err error) error {
		to := filepath.Join(dir, strings.TrimPrefix(path, from))
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return os.MkdirAll(to, 0o700)
		case os.Link(path, to) == nil:
			return nil
		}
		return cache.CopyFile(to, path)
	}
	err := errors.Join(filepath.WalkDir(filepath.Join(from, "trees/runtime"), lend), filepath.WalkDir(filepath.Join(from, "index/snapshot"), lend))
	if err != nil {
		t.Fatal(err)
	}
	snapshots, err := filepath.Glob(filepath.Join(dir, "index/snapshot/*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range snapshots {
		var index struct{ SHA256 string }
		text, err := os.ReadFile(path)
		if err := errors.Join(err, json.Unmarshal(text, &index)); err != nil {
			t.Fatal(err)
		}
		blob := filepath.Join("blobs/sha256", index.SHA256[:2], index.SHA256)
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, blob)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := filepath.WalkDir(filepath.Join(from, blob), lend); err != nil {
			t.Fatal(err)
		}
	}
}
