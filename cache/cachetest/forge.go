package cachetest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"rillbox/cache"
)

// Forge replaces a text by another one in all of an archive of the cache's, and makes its
// digests right again. The text must be there.
func Forge(t testing.TB, archive []byte, text, by string) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(z)
	contents, index, found := map[string]string{}, "", false
	digests := map[string]string{} // before → now
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		now := strings.ReplaceAll(string(content), text, by)
		found = found || now != string(content)
		if index == "" {
			index = now
			continue
		}
		sum := sha256.Sum256([]byte(now))
		digests[h.Name] = hex.EncodeToString(sum[:])
		contents[digests[h.Name]] = now
	}
	var a cache.Archive
	if err := json.Unmarshal([]byte(index), &a); err != nil || !found {
		t.Fatalf("%q is not there, or can't be replaced: %v", text, err)
	}
	for _, p := range a.Entries {
		for i := range p.Files {
			f := &p.Files[i]
			f.SHA256 = digests[f.SHA256]
			f.Size = int64(len(contents[f.SHA256]))
		}
	}
	list, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	w := tar.NewWriter(packed)
	add := func(name, content string) {
		err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o644})
		if err == nil {
			_, err = io.WriteString(w, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	add("index.json", string(list))
	for _, digest := range slices.Sorted(maps.Keys(contents)) {
		add(digest, contents[digest])
	}
	if err := errors.Join(w.Close(), packed.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
