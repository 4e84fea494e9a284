//go:build !windows

package pyodide

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"rillbox/pyodide/gateway"
	"rillbox/supervisor/job"
)

func TestVersionsOfPython(t *testing.T) {
	for specifier, want := range map[string]bool{
		"": true, ">=3.8": true, ">=3.14.2": true, ">=3.14.3": false, ">3.14": true, ">3.14.2": false, "<3.14": false, "<4": true, "<=3.14.2": true,
		"<=3.14": false, "==3.14.*": true, "==3.13.*": false, "==3.14.2": true, "!=3.14.*": false, "~=3.11": true, "~=3.11.1": false, "~=3.14.1": true,
		">=3.8,<3.14": false, ">=3.8, !=3.9.*": true, "nonsense": true, ">=": true, "==3.14.2.0": true,
	} {
		if got := runsOn(specifier, "3.14.2"); got != want {
			t.Errorf("%q: %v", specifier, got)
		}
	}
}

func TestWhatALockFileDemands(t *testing.T) {
	distributed := map[string]string{"numpy": "2.4.6", "six": "1.17.0", "pandas": "3.0.0", "built": "3.0.3"}
	p := job.Program{Packages: []string{"Asked[x]>=2"}, Manifest: job.Manifest{
		Requirements: []string{"a>1"},
		Lock: job.Lock{File: "uv.lock", Python: []job.LockedPackage{
			{Name: "six", Version: "1.15.0", Files: []job.LockedFile{{Name: "six-1.15.0-py2.py3-none-any.whl", SHA256: "6"}}},
			{Name: "numpy", Version: "2.3.1", Files: []job.LockedFile{{Name: "numpy-2.3.1-cp314-cp314-manylinux_x86_64.whl", SHA256: "1"}}}, // only Pyodide's is for here
			{Name: "built", Version: "3.0.4", Files: []job.LockedFile{{Name: "built-3.0.4.tar.gz", SHA256: "8"}}},                           // as rillbox lock writes it
			{Name: "pandas", Version: "3.0.0", Files: []job.LockedFile{{Name: "pandas.whl", SHA256: "2"}}},
			{Name: "native", Version: "1", Files: []job.LockedFile{{Name: "native-1-cp314-win.whl", SHA256: "3"}}},
			{Name: "two", Version: "1", Files: []job.LockedFile{{SHA256: "4"}}},
			{Name: "two", Version: "2", Files: []job.LockedFile{{SHA256: "5"}}},
			{Name: "asked", Version: "1", Files: []job.LockedFile{{SHA256: "7"}}},
		}},
	}}
	if got := strings.Join(constraints(p, distributed), " "); got != "a>1 built==3.0.4 native==1 pandas==3.0.0 six==1.15.0" {
		t.Error(got)
	}
	p.Manifest.Frozen = true
	if got := strings.Join(constraints(p, distributed), " "); !strings.Contains(got, "asked==1") {
		t.Error(got)
	}
}

func TestALockFileKeepsWhatOursHad(t *testing.T) {
	before := job.Lock{Python: []job.LockedPackage{
		{Name: "a", Version: "1", Files: []job.LockedFile{{Name: "a-1-py3-none-any.whl", SHA256: "a1"}}},
		{Name: "b", Version: "1", Files: []job.LockedFile{{Name: "b-1-py3-none-any.whl", SHA256: "b1"}}},
	}}
	files := []gateway.File{{Name: "b", Version: "2", Filename: "b-2-py3-none-any.whl", URL: "https://x.test/b.whl", SHA256: "b2", Size: 7}, {Name: "lib", Version: "1", Filename: "lib-1.zip", SHA256: "l"},
		{Name: "of-source", Version: "1", Filename: "of_source-1-py3-none-any.whl", URL: "https://x.test/of-source-1.tar.gz#sha256=s", SHA256: "w", Source: gateway.Built}}
	for _, foreign := range []bool{false, true} {
		before.Foreign = foreign
		var read struct {
			Version  string `toml:"lock-version"`
			Packages []struct {
				Name, Version string
				Archive       map[string]any
				Sdist         map[string]any
				Wheels        []map[string]any
			}
		}
		text := lockFile(before, files)
		if err := toml.Unmarshal(text, &read); err != nil || read.Version != "1.0" {
			t.Fatalf("%s: %v", text, err)
		}
		var names []string
		for _, p := range read.Packages {
			names = append(names, p.Name+p.Version)
		}
		want := []string{"a1", "b2", "lib1", "of-source1"}
		if foreign {
			want = want[1:]
		}
		if !slices.Equal(names, want) || read.Packages[len(want)-3].Wheels[0]["url"] != "https://x.test/b.whl" || read.Packages[len(want)-2].Archive == nil ||
			fmt.Sprint(read.Packages[len(want)-1].Sdist) != "map[hashes:map[sha256:s] name:of-source-1.tar.gz url:https://x.test/of-source-1.tar.gz]" {
			t.Errorf("%s", text)
		}
	}
}
