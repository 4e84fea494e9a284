package manifest

import (
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
			[]string{`requirements.txt: "-r other.txt" is not honoured: options of pip's have settings here (rillbox config --help)`, `requirements.txt: "--index-url https://evil.test/simple" is not honoured: options of pip's have settings here (rillbox config --help)`}},
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
