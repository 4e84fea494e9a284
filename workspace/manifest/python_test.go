package manifest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"rillbox/supervisor/job"
)

const aDigest = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func TestPythonsManifests(t *testing.T) {
	for _, row := range []struct {
		name, code, files, want string
		notes                   []string
	}{
		{"pyproject.toml", "", `
-- pyproject.toml --
[project]
name = "My.Proj"
requires-python = ">=3.12"
dependencies = ["Requests[socks] >=2 ; python_version > '3'", "wheel @ https://x.test/a-1-py3-none-any.whl", "git @ git+https://x.test/g", "file @ file:///etc/x.whl", "-e .", "../x"]
optional-dependencies.x = ["requests<1", "extra"]
dynamic = ["version"]
[dependency-groups]
dev = ["pytest>=8", {include-group = "other"}]
[tool.uv]
constraint-dependencies = ["urllib3<2"]
index-url = "https://evil.test/simple"
[tool.uv.sources]
local_one = {path = "../one"}
-- requirements.txt --
six==1.15.0 # a comment
`, `{"refused":{"file":"../pyproject.toml has it come from \"file:///etc/x.whl\", which is no wheel at an https: URL","git":"../pyproject.toml has it come from \"git+https://x.test/g\", which is no wheel at an https: URL","local-one":"../pyproject.toml has it come from a place of its own (tool.uv.sources), and not from the package index","my-proj":"../pyproject.toml is of the project my-proj itself, which is not installed here: its modules are found beside the program"},` +
			`"requirements":["Requests[socks] \u003e=2 ; python_version \u003e '3'","wheel @ https://x.test/a-1-py3-none-any.whl","urllib3\u003c2","extra","pytest\u003e=8"],"requires":"\u003e=3.12"}`,
			[]string{`../pyproject.toml: "tool.uv.index" is not honoured`, `../pyproject.toml: "-e ." is not honoured: it is no requirement of a package (PEP 508)`, `../pyproject.toml: "../x" is not honoured: it is no requirement of a package (PEP 508)`}},
		{"requirements.txt", "", `
-- a/requirements.txt --
# pip-compile
six==1.15.0 \
    --hash=sha256:` + aDigest + ` \
    --hash=sha512:00
humanize>=4
-r other.txt
--index-url https://evil.test/simple
`, `{"requirements":["six==1.15.0","humanize\u003e=4"],"lock":{"file":"requirements.txt","python":[{"name":"six","version":"1.15.0","files":[{"name":"","url":"","sha256":"` + aDigest + `"}]}],"foreign":true}}`,
			[]string{`requirements.txt, line 6: the file "other.txt" is not honoured: there is no such file`, `requirements.txt, line 7: "--index-url https://evil.test/simple" is not honoured: options of pip's have settings here (rillbox config --help)`}},
		{"requirements.txt of several files", "", `
-- a/requirements.txt --
# comments may end so \
six \
  >= 1.15 ; \
  python_version > "3" # this one too \
  and what goes on
-rmore/all.txt
--constraint=../constraints.txt
-c 'constraints.txt'
-r https://evil.test/x.txt
-r ../../../etc/passwd
humanize#egg --hash=sha256:` + aDigest + `
tabulate>=0.9 --hash=sha256:` + aDigest + `
attrs==25.1 --hash=md5:00 --config-settings "a=b"
-- a/more/all.txt --
-r ../requirements.txt
-r all.txt
rich ; sys_platform == "win32"
-- constraints.txt --
idna<4
`, `{"requirements":["six   \u003e= 1.15 ;   python_version \u003e \"3\"","rich ; sys_platform == \"win32\"","idna\u003c4","tabulate\u003e=0.9","attrs==25.1"]}`,
			[]string{
				`requirements.txt, line 8: the file "constraints.txt" is not honoured: there is no such file`,
				`requirements.txt, line 9: the file "https://evil.test/x.txt" is not honoured: it is no file of the project`,
				`requirements.txt, line 10: the file "../../../etc/passwd" is not honoured: it is no file of the project`,
				`requirements.txt, line 11: --hash is not honoured: it is no requirement of a package (PEP 508)`,
				`requirements.txt: "humanize#egg" is not honoured: it is no requirement of a package (PEP 508)`,
				`requirements.txt, line 12: --hash is not honoured: the version is not pinned with ==`,
				`requirements.txt, line 13: "--config-settings \"a=b\"" is not honoured`,
				`requirements.txt, line 13: --hash is not honoured: none of its digests is a sha256`,
			}},
		{"a program that says it itself", "# /// script\n# ///\n", `
-- a/pyproject.toml --
project.dependencies = ["six"]
-- a/requirements.txt --
six
-- uv.lock --
version = 1
-- a/main.py.lock --
version = 1
[[package]]
name = "six"
version = "1.15.0"
source = { registry = "https://evil.test/simple" }
sdist = { url = "https://evil.test/six-1.15.0.tar.gz", hash = "sha256:` + aDigest + `" }
wheels = [{ url = "https://evil.test/six-1.15.0-py2.py3-none-any.whl", hash = "sha256:` + aDigest + `", size = 5 }]
[[package]]
name = "local"
version = "1"
source = { editable = "." }
`, `{"refused":{"local":"main.py.lock has it come from a place of its own, and not from the package index"},"lock":{"file":"main.py.lock","python":[{"name":"six","version":"1.15.0","files":[{"name":"six-1.15.0-py2.py3-none-any.whl","url":"https://evil.test/six-1.15.0-py2.py3-none-any.whl","size":5,"sha256":"` + aDigest + `"},{"name":"six-1.15.0.tar.gz","url":"https://evil.test/six-1.15.0.tar.gz","sha256":"` + aDigest + `"}]}],"foreign":true}}`, nil},
		{"pylock.toml", "", `
-- a/pylock.toml --
lock-version = "1.0"
created-by = "rillbox"
[[packages]]
name = "Six"
version = "1.15.0"
wheels = [{ name = "six-1.15.0-py2.py3-none-any.whl", path = "../../etc/passwd", hashes = { sha256 = "` + aDigest + `" } }]
[[packages]]
name = "v"
version = "1"
vcs = { type = "git", url = "https://x.test" }
[[packages]]
name = "../x"
version = "1"
archive = { url = "https://x.test/x.zip", hashes = { sha256 = "` + aDigest + `" } }
-- a/uv.lock --
version = 1
`, `{"refused":{"v":"pylock.toml has it come from a place of its own, and not from the package index"},"lock":{"file":"pylock.toml","python":[{"name":"six","version":"1.15.0","files":[{"name":"six-1.15.0-py2.py3-none-any.whl","url":"","sha256":"` + aDigest + `"}]}]}}`,
			[]string{`pylock.toml: the package "-/x" is not honoured: its name, its version or a digest can't be one`}},
		{"others", "", "-- poetry.lock --\n-- a/pyproject.toml --\n[tool.poetry.dependencies]\nsix = \"*\"\n", `{}`,
			[]string{`pyproject.toml: "tool.poetry.dependencies" is not honoured`, `../poetry.lock is not honoured: pylock.toml and uv.lock are`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			m, notes, err := Read(filesOf(row.files), "a/main.py", row.code, job.Python)
			if err != nil {
				t.Fatal(err)
			}
			if show(m) != row.want {
				t.Errorf("it says %s", show(m))
			}
			if row.notes != nil && !slices.Equal(notes, row.notes) {
				t.Errorf("it notes %q", notes)
			}
		})
	}
	for file, text := range map[string]string{
		"pyproject.toml": "[project", "pylock.toml": "packages = 1", "uv.lock": "\xff", "requirements.txt": "\xff",
	} {
		if _, _, err := Read(Files{file: []byte(text)}, "main.py", "", job.Python); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestRequirementsThatSomebodyAsksFor(t *testing.T) {
	files := Files{
		"p/requirements/dev.txt":  []byte("\xff\xfe-\x00r\x00 \x00.\x00.\x00/\x00a\x00.\x00t\x00x\x00t\x00"), // as PowerShell writes it
		"p/a.txt":                 []byte("\n-c c.txt\nnpm:chalk@5\nsix==1.15.0 --hash=sha256:" + aDigest + " --hash=md5:0\n--pre\n"),
		"p/c.txt":                 []byte("idna<4"),
		"p/wrong.txt":             []byte("-r a.txt\nrequests >> 2\n"),
		"p/marker.txt":            []byte("idna; (python_version > '3' or os_name == \"nt\") and extra not in 'x'\nrequests; python_version ~ 3\n"),
		"p/index.txt":             []byte("six\n--extra-index-url https://evil.test/\n"),
		"p/editable.txt":          []byte("-e .\n"),
		"p/none.txt":              []byte("-r requirements/none.txt\n"),
		"p/requirements/away.txt": []byte("-r ../../../x.txt\n"),
		"p/unpinned.txt":          []byte("six \\\n --hash=sha256:" + aDigest),
	}
	list, notes, err := ReadRequirements(files, "p/requirements/dev.txt", "sub/requirements/dev.txt", files["p/requirements/dev.txt"])
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"Text":"idna\u003c4","File":"sub/c.txt","Constraint":true,"Locked":null},{"Text":"npm:chalk@5","File":"sub/a.txt","Constraint":false,"Locked":null},` +
		`{"Text":"six==1.15.0","File":"sub/a.txt","Constraint":false,"Locked":{"name":"six","version":"1.15.0","files":[{"name":"","url":"","sha256":"` + aDigest + `"}]}}]`
	if text, _ := json.Marshal(list); string(text) != want {
		t.Errorf("it says %s", text)
	}
	if want := []string{`sub/a.txt, line 5: "--pre" is not honoured: options of pip's have settings here (rillbox config --help)`}; !slices.Equal(notes, want) {
		t.Errorf("it notes %q", notes)
	}
	for name, want := range map[string]string{
		"p/wrong.txt":             `/p/wrong.txt, line 2: "requests >> 2" is no requirement of a package (PEP 508), such as requests>=2`,
		"p/marker.txt":            `/p/marker.txt, line 2: "requests; python_version ~ 3" is no requirement`,
		"p/index.txt":             `/p/index.txt, line 2: "--extra-index-url https://evil.test/" can't be had here: options of pip's have settings (rillbox config --help)`,
		"p/editable.txt":          `/p/editable.txt, line 1: "-e ." can't be had here`,
		"p/none.txt":              `/p/none.txt, line 1: "requirements/none.txt" can't be read: there is no such file`,
		"p/requirements/away.txt": `/p/requirements/away.txt, line 1: "../../../x.txt" can't be read: it is no file of the project`,
		"p/unpinned.txt":          `/p/unpinned.txt, line 1: --hash can't be honoured: the version is not pinned with ==`,
	} {
		if _, _, err := ReadRequirements(files, name, "/"+name, files[name]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzPython: whatever a project's files hold, reading them ends, and what they say are
// requirements, and digests of files.
func FuzzPython(f *testing.F) {
	f.Add("project.name = 'x'\nproject.dependencies = ['a>1', 'b @ https://x.test/b.whl']\nversion = 1", "a==1 --hash=sha256:"+aDigest)
	f.Add("lock-version = '1.0'\n[[packages]]\nname = 'a'\nversion = '1'\nwheels = [{name='a.whl', hashes={sha256='"+aDigest+"'}}]", "-r x\n a \\\n ==1")
	f.Fuzz(func(t *testing.T, text, requirements string) {
		files := Files{"pyproject.toml": []byte(text), "pylock.toml": []byte(text), "main.py.lock": []byte(text), "requirements.txt": []byte(requirements)}
		for _, code := range []string{"", "# /// script\n"} {
			m, _, err := Read(files, "main.py", code, job.Python)
			if err != nil {
				continue
			}
			for _, text := range m.Requirements {
				if strings.HasPrefix(text, "-") || strings.Contains(text, "\n") || strings.Contains(text, "file:") && !strings.Contains(text, "https://") && strings.Contains(text, "@ file:") {
					t.Errorf("%q is required", text)
				}
			}
			for _, p := range m.Lock.Python {
				for _, file := range p.Files {
					if !sha256Digest.MatchString(file.SHA256) || strings.Contains(file.Name, "/") {
						t.Errorf("%+v", file)
					}
				}
			}
		}
	})
}
