package gateway

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rillbox/cache"
	"rillbox/cache/egress"
)

// TestADirectoryInPlaceOfTheCDN: its files are held against the lock file, and no network
// is asked for them, nor for those that it lacks.
func TestADirectoryInPlaceOfTheCDN(t *testing.T) {
	cdn := newSite(t)
	content := wheel(t, "demo", "1.0")
	sum := cdn.bytes("/"+demoWheel, content)
	for name, row := range map[string]struct {
		put    func(path string) error
		o      Options
		status int
		want   string
	}{
		"there":       {put: func(path string) error { return os.WriteFile(path, content, 0o600) }, status: http.StatusOK},
		"offline":     {put: func(path string) error { return os.WriteFile(path, content, 0o600) }, o: Options{Cache: openCache(t, t.TempDir(), cache.Options{Offline: true})}, status: http.StatusOK},
		"no fetching": {put: func(path string) error { return os.WriteFile(path, content, 0o600) }, o: Options{Policy: egress.Policy{NoFetch: true}}, status: http.StatusGatewayTimeout, want: "turned fetching off"},
		"lacking":     {put: func(string) error { return nil }, status: http.StatusBadGateway, want: demoWheel + ": it is not in /"},
		"other bytes": {put: func(path string) error { return os.WriteFile(path, append(content, 'x'), 0o600) }, status: http.StatusBadGateway, want: "the index or lock file says " + sum},
		"a pipe":      {put: func(path string) error { return syscall.Mkfifo(path, 0o600) }, status: http.StatusBadGateway, want: "not a regular file"},
		"a directory": {put: func(path string) error { return os.Mkdir(path, 0o700) }, status: http.StatusBadGateway, want: "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			row.o.Mirrored, row.o.CDN, row.o.Lock = t.TempDir(), cdn.URL+"/", lockOf("demo", "1.0", demoWheel, sum)
			if err := row.put(filepath.Join(row.o.Mirrored, demoWheel)); err != nil {
				t.Fatal(err)
			}
			gr := newGrant(newGateway(t, row.o))
			status, body := ask(t, gr, "cdn/"+demoWheel)
			if status != row.status || !strings.Contains(string(body), row.want) || status == http.StatusOK && !bytes.Equal(body, content) {
				t.Errorf("%d %.300q", status, body)
			}
			if status == http.StatusOK && gr.Served()[0].URL != cdn.URL+"/"+demoWheel {
				t.Errorf("served %+v", gr.Served())
			}
		})
	}
	if n := cdn.count("/" + demoWheel); n != 0 {
		t.Errorf("the CDN was asked %d times", n)
	}
}
