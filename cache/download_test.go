package cache

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rillbox/cache/egress"
)

var payload = bytes.Repeat([]byte("rillbox\n"), 1<<15) // 256 KiB

func sha256Hex(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }
func sha512Hex(b []byte) string { s := sha512.Sum512(b); return hex.EncodeToString(s[:]) }

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// dropAfter sends the head of an answer and then breaks the connection.
func dropAfter(w http.ResponseWriter, n int) {
	w.Header().Set("Content-Length", fmt.Sprint(len(payload)))
	w.Header().Set("Accept-Ranges", "bytes")
	_, _ = w.Write(payload[:n])
	panic(http.ErrAbortHandler)
}

func TestADroppedConnectionIsResumed(t *testing.T) {
	var gets, resumed atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && gets.Add(1) == 1 {
			dropAfter(w, 100_000)
		}
		if r.Method == http.MethodGet && strings.HasPrefix(r.Header.Get("Range"), "bytes=") && r.Header.Get("Range") != "bytes=0-" {
			resumed.Add(1)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(payload))
	})
	c := open(t, t.TempDir(), Options{})
	dst := filepath.Join(t.TempDir(), "file")
	var last, total int64
	err := c.Download(t.Context(), egress.Source{URL: url + "/file", SHA256: sha256Hex(payload)}, dst, func(d, n int64) {
		if d < last {
			t.Errorf("progress went back from %d to %d", last, d)
		}
		last, total = d, n
	})
	if err != nil || mustRead(t, dst) != string(payload) {
		t.Fatal(err)
	}
	if gets.Load() != 2 || resumed.Load() != 1 {
		t.Errorf("%d requests, %d of them resumed", gets.Load(), resumed.Load())
	}
	if last != int64(len(payload)) || total != last {
		t.Errorf("progress ended at %d of %d", last, total)
	}
}

func TestAServerThatCannotResumeIsAskedForAll(t *testing.T) {
	answers := map[string]http.HandlerFunc{
		"it has no ranges": func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(payload) },
		"it ignores the range": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Accept-Ranges", "bytes")
			w.Header().Set("Content-Length", fmt.Sprint(len(payload)))
			_, _ = w.Write(payload)
		},
		"it knows no HEAD": func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead {
				http.Error(w, "no", http.StatusMethodNotAllowed)
				return
			}
			_, _ = w.Write(payload)
		},
		"the part is of other bytes": func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(payload))
		},
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			var gets atomic.Int32
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet && gets.Add(1) == 1 {
					if strings.Contains(name, "other bytes") {
						w.Header().Set("Content-Length", fmt.Sprint(len(payload)))
						_, _ = w.Write(bytes.Repeat([]byte("x"), 1000))
						panic(http.ErrAbortHandler)
					}
					dropAfter(w, 1000)
				}
				answer(w, r)
			})
			c := open(t, t.TempDir(), Options{})
			dst := filepath.Join(t.TempDir(), "file")
			err := c.Download(t.Context(), egress.Source{URL: url, SHA512: sha512Hex(payload)}, dst, nil)
			if err != nil || mustRead(t, dst) != string(payload) {
				t.Fatal(err)
			}
		})
	}
}

func TestWhatIsNotWantedIsRefused(t *testing.T) {
	tests := map[string]struct {
		src    egress.Source
		answer http.HandlerFunc
		want   string
		tries  int32 // 0: any
	}{
		"a wrong sha256": {src: egress.Source{SHA256: sha256Hex([]byte("other"))}, want: "not those that are pinned", tries: 1},
		"a wrong sha512": {src: egress.Source{SHA512: sha512Hex([]byte("other"))}, want: "not those that are pinned", tries: 1},
		"too large":      {src: egress.Source{MaxBytes: 1000}, want: "more than the 1000", tries: 1},
		"too large, and its size not told": {src: egress.Source{MaxBytes: 1000}, want: "more than the 1000", answer: func(w http.ResponseWriter, r *http.Request) {
			for range 10 {
				_, _ = w.Write(payload[:1000])
				w.(http.Flusher).Flush()
			}
		}},
		"not found": {want: "404", answer: http.NotFound, tries: 1},
		"an endless redirect": {want: "redirects", answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/again", http.StatusFound)
		}},
		"a redirect by X-Terraform-Get": {want: "404", answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Terraform-Get", "file:///etc/passwd")
			http.NotFound(w, r)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var tries atomic.Int32
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				tries.Add(1)
				if test.answer != nil {
					test.answer(w, r)
					return
				}
				_, _ = w.Write(payload)
			})
			c := open(t, t.TempDir(), Options{})
			test.src.URL = url + "/file"
			dir := t.TempDir()
			err := c.Download(t.Context(), test.src, filepath.Join(dir, "file"), nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("err %v, want %q in it", err, test.want)
			}
			if test.tries != 0 && tries.Load() != test.tries {
				t.Errorf("%d requests, want %d", tries.Load(), test.tries)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestAnErrorOfTheServerIsTriedAgain(t *testing.T) {
	var tries atomic.Int32
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if tries.Add(1) < 3 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write(payload)
	})
	c := open(t, t.TempDir(), Options{})
	dst := filepath.Join(t.TempDir(), "file")
	if err := c.Download(t.Context(), egress.Source{URL: url}, dst, nil); err != nil || mustRead(t, dst) != string(payload) {
		t.Fatal(err)
	}
}

func TestOnlyHTTPIsFetched(t *testing.T) {
	c := open(t, t.TempDir(), Options{})
	for _, url := range []string{"file:///etc/passwd", "git::https://host/x", "/etc/passwd", "", "https://", "s3::https://h/b"} {
		dst := filepath.Join(t.TempDir(), "file")
		if err := c.Download(t.Context(), egress.Source{URL: url}, dst, nil); err == nil || egress.IsOffline(err) {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// member is one entry of a test archive.
type member struct {
	name, text, link string
	size             int64 // claimed; 0: that of text
}

func tgz(t *testing.T, members ...member) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Mode: 0o755, Size: int64(len(m.text)), Typeflag: tar.TypeReg}
		if m.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, m.link
		}
		if m.size != 0 {
			h.Size = m.size
		}
		must(t, w.WriteHeader(h))
		_, err := io.WriteString(w, m.text)
		must(t, err)
	}
	if err := w.Close(); err != nil && !strings.Contains(err.Error(), "missed writing") {
		t.Fatal(err)
	}
	must(t, z.Close())
	return out.Bytes()
}

func zipped(t *testing.T, members ...member) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, m := range members {
		f, err := w.Create(m.name)
		must(t, err)
		_, err = io.WriteString(f, m.text)
		must(t, err)
	}
	must(t, w.Close())
	return out.Bytes()
}

func TestAHostileArchiveIsRefused(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte("mine"), 0o600))
	pinned := Pinned{Files: map[string][]string{"deno": {sha256Hex([]byte("good"))}}}
	tests := map[string]struct {
		archive string
		bytes   []byte
		want    string
	}{
		"a link where a file should be":      {"tgz", tgz(t, member{name: "deno", link: outside}), "refused"},
		"a file written through a link":      {"tgz", tgz(t, member{name: "l", link: filepath.Dir(outside)}, member{name: "l/outside", text: "evil"}), ""},
		"a link and a file of one name":      {"tgz", tgz(t, member{name: "deno", link: outside}, member{name: "deno", text: "evil"}), "refused"},
		"a path that climbs":                 {"tgz", tgz(t, member{name: "../outside", text: "evil"}), ".."},
		"a path that climbs, zipped":         {"zip", zipped(t, member{name: "../outside", text: "evil"}), ".."},
		"larger than any runtime":            {"tgz", tgz(t, member{name: "deno", text: "x", size: 2 << 30}), "larger than limit"},
		"other bytes":                        {"zip", zipped(t, member{name: "deno", text: "evil"}), "not the pinned file"},
		"without the file":                   {"zip", zipped(t, member{name: "denot", text: "good"}), "missing"},
		"no archive":                         {"tgz", []byte("<html>"), "unpack"},
		"an archive of a kind not known":     {"rar", []byte("Rar!"), "unknown kind"},
		"cut short":                          {"tgz", tgz(t, member{name: "deno", text: "good"})[:20], "unpack"},
		"a directory where a file should be": {"tgz", tgz(t, member{name: "deno/x", text: "good"}), "not a regular file"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(test.bytes) })
			c := open(t, t.TempDir(), Options{})
			dir := filepath.Join(t.TempDir(), "a", "b")
			err := c.Download(t.Context(), egress.Source{URL: url, Archive: test.archive}, dir, nil)
			if err == nil {
				err = pinned.check(dir)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("err %v, want %q in it", err, test.want)
			}
			if text := mustRead(t, outside); text != "mine" {
				t.Errorf("outside is now %q", text)
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(dir), "outside")); err == nil {
				t.Error("written beside the directory")
			}
		})
	}
}

// pinnedFrom is the payload, as the file "got".
func pinnedFrom(name string, from ...Origin) Pinned {
	return Pinned{Name: name, Files: map[string][]string{"got": {"another build's", sha256Hex(payload)}}, From: from}
}

// origin downloads a URL to the file "got".
func origin(c *Cache, name, url string) Origin {
	return Origin{Name: name, Fetch: func(ctx context.Context, dir string, progress func(done, total int64)) error {
		return c.Download(ctx, egress.Source{URL: url}, filepath.Join(dir, "got"), progress)
	}}
}

func TestTheSecondSourceFollows(t *testing.T) {
	firsts := map[string]http.HandlerFunc{
		"one that never answers": func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"one that fails":         http.NotFound,
		"one of other bytes":     func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "evil") },
	}
	for name, answer := range firsts {
		t.Run(name, func(t *testing.T) {
			first := serve(t, answer)
			second := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(payload) })
			c := open(t, t.TempDir(), Options{})
			dir := t.TempDir()
			begun := time.Now()
			err := c.Fetch(t.Context(), pinnedFrom("the thing", origin(c, "first", first), origin(c, "second", second)), dir, nil)
			if err != nil || mustRead(t, filepath.Join(dir, "got")) != string(payload) {
				t.Fatal(err)
			}
			if took := time.Since(begun); took > 4*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func TestASlowSourceThatAnswersIsNotDoubled(t *testing.T) {
	release := make(chan struct{})
	first := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(payload[:1000])
		w.(http.Flusher).Flush()
		<-release
		_, _ = w.Write(payload[1000:])
	})
	var asked atomic.Bool
	second := serve(t, func(w http.ResponseWriter, r *http.Request) { asked.Store(true); _, _ = w.Write(payload) })
	c := open(t, t.TempDir(), Options{})
	time.AfterFunc(2*headStart, func() { close(release) })
	err := c.Fetch(t.Context(), pinnedFrom("the thing", origin(c, "first", first), origin(c, "second", second)), t.TempDir(), nil)
	if err != nil || asked.Load() {
		t.Fatalf("err %v, second asked: %v", err, asked.Load())
	}
}

func TestAllErrorsAreTold(t *testing.T) {
	a := serve(t, http.NotFound)
	b := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusForbidden) })
	c := open(t, t.TempDir(), Options{})
	err := c.Fetch(t.Context(), pinnedFrom("the thing", origin(c, "first", a), origin(c, "second", b)), t.TempDir(), nil)
	if err == nil || egress.IsOffline(err) {
		t.Fatalf("err %v", err)
	}
	for _, want := range []string{"fetch the thing", "first: ", "404", "second: ", "403"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("err %v, want %q in it", err, want)
		}
	}
}

func TestWithoutANetworkWhatIsMissingIsNamedSoon(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	closed := "http://" + l.Addr().String()
	must(t, l.Close())
	c := open(t, t.TempDir(), Options{})
	begun := time.Now()
	err = c.Fetch(t.Context(), pinnedFrom("Deno 2.9.6", origin(c, "first", closed), origin(c, "second", "http://no-such-host.invalid/x"),
		Origin{Name: "third", Fetch: func(context.Context, string, func(int64, int64)) error { return ErrNoSource }}), t.TempDir(), nil)
	if !errors.Is(err, egress.ErrOffline) || err.Error() != "Deno 2.9.6 is not in the cache, and the network is not reachable" {
		t.Errorf("err %v", err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestOfflineNothingIsAsked(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { t.Errorf("asked: %s %s", r.Method, r.URL) })
	c := open(t, t.TempDir(), Options{Offline: true})
	err := c.Fetch(t.Context(), pinnedFrom("Deno 2.9.6", origin(c, "first", url)), t.TempDir(), nil)
	if !errors.Is(err, egress.ErrOffline) || err.Error() != "Deno 2.9.6 is not in the cache, and the network is not reachable" {
		t.Errorf("err %v", err)
	}
	err = c.Download(t.Context(), egress.Source{URL: url + "/x"}, filepath.Join(t.TempDir(), "x"), nil)
	if !errors.Is(err, egress.ErrOffline) || !strings.Contains(err.Error(), url+"/x is not in the cache") {
		t.Errorf("err %v", err)
	}
}

func TestACancelledDownloadEndsAtOnce(t *testing.T) {
	here := make(chan struct{})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		close(here)
		<-r.Context().Done()
	})
	c := open(t, t.TempDir(), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-here; cancel() }()
	err := c.Download(ctx, egress.Source{URL: url}, filepath.Join(t.TempDir(), "x"), nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err %v", err)
	}
}

// TestAuthorizationStaysAtItsOrigin: not even another port of the same host gets it.
func TestAuthorizationStaysAtItsOrigin(t *testing.T) {
	var told atomic.Int32
	elsewhere := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || r.Header.Get("Referer") != "" {
			told.Add(1)
		}
		_, _ = w.Write(payload)
	})
	home := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		http.Redirect(w, r, elsewhere+"/file", http.StatusFound)
	})
	c := open(t, t.TempDir(), Options{})
	for name, src := range map[string]egress.Source{
		"a token":    {URL: home + "/file", Header: http.Header{"Authorization": {"Bearer secret"}}},
		"a password": {URL: strings.Replace(home, "//", "//me:secret@", 1) + "/file"},
	} {
		if err := c.Download(t.Context(), src, filepath.Join(t.TempDir(), "file"), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if told.Load() != 0 {
		t.Error("another origin got what is for the first")
	}
}

// TestAURLIsAskedForAsItIs: what go-getter would take for commands is the server's.
func TestAURLIsAskedForAsItIs(t *testing.T) {
	const path = "/a//b.zip?archive=zip&checksum=file:http://x.invalid/&filename=..&signed=%2f"
	var asked atomic.Value
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { asked.Store(r.RequestURI); _, _ = w.Write(payload) })
	c := open(t, t.TempDir(), Options{})
	dst := filepath.Join(t.TempDir(), "file")
	err := c.Download(t.Context(), egress.Source{URL: url + path, SHA256: sha256Hex(payload)}, dst, nil)
	if err != nil || mustRead(t, dst) != string(payload) || asked.Load() != path {
		t.Errorf("asked for %v: %v", asked.Load(), err)
	}
}

// TestWhatCannotBeStoredIsNotFetchedAgain: a fault of this machine does not pass.
func TestWhatCannotBeStoredIsNotFetchedAgain(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(payload) })
	c := open(t, t.TempDir(), Options{})
	dst := filepath.Join(t.TempDir(), "file")
	must(t, os.Mkdir(dst+".part", 0o700))
	err := c.Download(t.Context(), egress.Source{URL: url}, dst, nil)
	if !egress.IsLocal(err) || strings.Contains(err.Error(), "tries") {
		t.Errorf("err %v", err)
	}
}
