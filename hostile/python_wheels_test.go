//go:build !windows

package hostile

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"rillbox/cache/cachetest"
	"rillbox/deno"
	"rillbox/pyodide"
	"rillbox/supervisor/job"
)

// zipFile is one entry of an archive.
type zipFile struct {
	name, text string
	mode       os.FileMode
	zeros      int // MiB that follow the text
}

func zipOf(t testing.TB, files ...zipFile) []byte {
	t.Helper()
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	for _, file := range files {
		header := &zip.FileHeader{Name: file.name, Method: zip.Deflate}
		header.SetMode(0o644 | file.mode)
		packed := file.packed(t, header)
		w, err := archive.CreateRaw(header)
		if err == nil {
			_, err = w.Write(packed)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// packed gives the entry's compressed bytes, and fills in its header. A mebibyte
// of zeros is compressed once and its bytes are repeated: to compress hundreds
// takes minutes under the race detector.
func (f zipFile) packed(t testing.TB, header *zip.FileHeader) []byte {
	t.Helper()
	zeros := make([]byte, 1<<20)
	header.CRC32 = crc32.ChecksumIEEE([]byte(f.text))
	for range f.zeros {
		header.CRC32 = crc32.Update(header.CRC32, crc32.IEEETable, zeros)
	}
	var out bytes.Buffer
	deflate, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	add := func(content []byte) (from int) { // what follows it does not depend on it, but for zeros
		from = out.Len()
		if _, err := deflate.Write(content); err != nil {
			t.Fatal(err)
		}
		if err := deflate.Flush(); err != nil {
			t.Fatal(err)
		}
		return from
	}
	add([]byte(f.text))
	if f.zeros > 1 {
		add(zeros)
		from := add(zeros)
		again := bytes.Clone(out.Bytes()[from:])
		for range f.zeros - 2 {
			out.Write(again)
		}
	}
	if err := deflate.Close(); err != nil {
		t.Fatal(err)
	}
	header.UncompressedSize64 = uint64(len(f.text) + f.zeros<<20)
	header.CompressedSize64 = uint64(out.Len())
	return out.Bytes()
}

// wheelFiles are what a wheel of one module and version 1.0 needs; metadata is
// added to its METADATA.
func wheelFiles(project, code string, metadata ...string) []zipFile {
	info := project + "-1.0.dist-info/"
	return []zipFile{
		{name: project + "/__init__.py", text: code + "\n"},
		{name: info + "METADATA", text: "Metadata-Version: 2.1\nName: " + project + "\nVersion: 1.0\n" + strings.Join(metadata, "\n") + "\n"},
		{name: info + "WHEEL", text: "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{name: info + "RECORD"},
	}
}

func wheelName(project string) string { return project + "-1.0-py3-none-any.whl" }

// index is a package index of the operator's on loopback.
type index struct {
	server *httptest.Server
	root   string // a path that no other index had, since pages are cached by URL

	mu     sync.Mutex
	wheels map[string][]byte // by project
}

func newIndex(t *testing.T) *index {
	i := &index{root: "/" + newSecret(), wheels: map[string][]byte{}}
	i.server = httptest.NewServer(i)
	t.Cleanup(i.server.Close)
	return i
}

func (i *index) url() string { return i.server.URL + i.root + "/simple" }

// put gives the index a wheel.
func (i *index) put(project string, content []byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wheels[project] = content
}

func (i *index) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	path, known := strings.CutPrefix(r.URL.Path, i.root)
	project, isPage := strings.CutPrefix(strings.TrimSuffix(path, "/"), "/simple/")
	name, isFile := strings.CutPrefix(path, "/files/")
	if isFile {
		project, _, _ = strings.Cut(name, "-1.0-")
	}
	content := i.wheels[strings.ReplaceAll(project, "-", "_")]
	i.mu.Unlock()
	switch {
	case !known || content == nil:
		http.NotFound(w, r)
	case isPage:
		file, sum := wheelName(strings.ReplaceAll(project, "-", "_")), sha256.Sum256(content)
		w.Header().Set("Content-Type", "application/vnd.pypi.simple.v1+json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"meta": map[string]string{"api-version": "1.1"}, "name": project, "versions": []string{"1.0"},
			"files": []any{map[string]any{
				"filename": file, "url": i.server.URL + i.root + "/files/" + file, "size": len(content),
				"hashes": map[string]string{"sha256": hex.EncodeToString(sum[:])},
			}},
		})
	case isFile:
		_, _ = w.Write(content)
	}
}

// pythonEngine makes an engine of the test's own.
func pythonEngine(t *testing.T, change func(*pyodide.Options)) *pyodide.Engine {
	t.Helper()
	o := pyodide.Options{Options: deno.Options{Cache: openShared(t), Limits: job.DefaultLimits()}}
	change(&o)
	engine, err := pyodide.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	cachetest.NeedNetwork(t, engine.Prepare(t.Context(), func(job.Event) {}))
	return engine
}
