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
		"micropip/__init__.py":      "",
		"micropip/package_index.py": source,
		"other/package_index.py":    `PYPI_URL = "https://other.example/simple"`,
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
	got, err := DefaultIndexURL(micropipWith(t, "PYPI = \"PYPI\"\nPYPI_URL = \""+want+"\"\nDEFAULT_INDEX_URLS = [PYPI_URL]\n"))
	if err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	for name, source := range map[string]string{
		"absent":      "DEFAULT_INDEX_URLS = []\nx = 'https://x.example'\n",
		"computed":    "PYPI_URL = f()\n",
		"placeholder": "PYPI_URL = \"https://index.example/{package_name}/json\"\n",
		"file":        "PYPI_URL = \"file:///etc/passwd\"\n",
		"plain http":  "PYPI_URL = \"http://index.example/simple\"\n",
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
