package gateway

import (
	"archive/zip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// micropipWith is a wheel of micropip whose index module has this source.
func micropipWith(t *testing.T, source string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "micropip-0.0-py3-none-any.whl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zw := zip.NewWriter(f)
	for name, text := range map[string]string{
		"micropip/__init__.py":           "",
		"micropip/package_index.py":      source,
		"micropip/_vendored/trap/x.py":   `DEFAULT_INDEX_URLS = ["https://vendored.example/simple"]`,
		"other/package_index.py":         `DEFAULT_INDEX_URLS = ["https://other.example/simple"]`,
		"micropip-0.0.dist-info/RECORD":  "",
		"micropip-0.0.dist-info/trap.py": `DEFAULT_INDEX_URLS = ["https://trap.example/simple"]`,
	} {
		w, err := zw.Create(name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaultIndexURL(t *testing.T) {
	const want = "https://index.example/simple"
	for name, source := range map[string]string{
		"by constants": "PYPI = \"PYPI\"\nPYPI_URL = \"" + want + "\"\nDEFAULT_INDEX_URLS = [PYPI_URL]\n",
		"literal":      "import x\nDEFAULT_INDEX_URLS = ['" + want + "', 'https://second.example']\n",
		"annotated":    "INDEX: str = '" + want + "'  # the index\nDEFAULT_INDEX_URLS: list[str] = [\n    # first\n    INDEX,\n]\n",
		"tuple":        "DEFAULT_INDEX_URLS = (\n  \"" + want + "\",\n)",
		"no list":      "DEFAULT_INDEX_URLS = \"" + want + "\"",
	} {
		got, err := DefaultIndexURL(micropipWith(t, source))
		if err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for name, source := range map[string]string{
		"absent":      "PYPI_URL = \"" + want + "\"\n",
		"computed":    "DEFAULT_INDEX_URLS = [f()]\n",
		"placeholder": "DEFAULT_INDEX_URLS = ['https://index.example/{package_name}/json']\n",
		"file":        "DEFAULT_INDEX_URLS = ['file:///etc/passwd']\n",
		"plain http":  "DEFAULT_INDEX_URLS = ['http://index.example/simple']\n",
		"empty":       "DEFAULT_INDEX_URLS = []\nx = 'https://x.example'\n",
	} {
		got, err := DefaultIndexURL(micropipWith(t, source))
		if err == nil || !strings.Contains(err.Error(), "configure one for pip") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := DefaultIndexURL(filepath.Join(t.TempDir(), "absent.whl")); err == nil {
		t.Error("an absent wheel gave an index")
	}
}

func FuzzDefaultIndex(f *testing.F) {
	f.Add("A = \"https://index.example/simple\"\nDEFAULT_INDEX_URLS = [A]\n")
	f.Add("DEFAULT_INDEX_URLS: x = (  # c\n 'https://index.example',)")
	f.Add("DEFAULT_INDEX_URLS = ['\n']")
	f.Fuzz(func(t *testing.T, source string) {
		found, err := defaultIndex(source)
		if err != nil {
			return
		}
		if u, err := operatorURL(found); err != nil || u.Scheme != "https" || !strings.Contains(source, found) {
			t.Errorf("%q gave %q: %v", source, found, err)
		}
	})
}
