package cache

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func ownKey(_, key string) string { return key }

// exported is an archive of a blob and a tree, which share a content.
func exported(t *testing.T, c *Cache) []byte {
	t.Helper()
	if _, err := c.Put(t.Context(), "wheel", "six", strings.NewReader("same")); err != nil {
		t.Fatal(err)
	}
	_, _, err := c.Tree(t.Context(), "runtime", "deno", func(_ context.Context, dir string) error {
		return errors.Join(os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700), os.WriteFile(filepath.Join(dir, "a", "b", "c"), []byte("same"), 0o600),
			os.WriteFile(filepath.Join(dir, "run"), []byte("other"), 0o700))
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(t.Context(), "snapshot", "made here", strings.NewReader("made")); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a, err := c.Export(t.Context(), &out, []string{"wheel", "runtime"}, ownKey)
	if err != nil || len(a.Entries) != 2 {
		t.Fatal(a, err)
	}
	return out.Bytes()
}

// take imports an archive, whose digest is right unless another one is given.
func take(t *testing.T, c *Cache, archive []byte, digest string, judge func(p Portable) error) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "archive")
	if err := os.WriteFile(path, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if digest == "" {
		digest = sumOf(string(archive))
	}
	return c.Import(t.Context(), f, digest, func(a *Archive, p Portable) (func(context.Context) error, error) {
		if judge != nil {
			if err := judge(p); err != nil {
				return nil, err
			}
		}
		return func(ctx context.Context) error { return storeAny(ctx, c, a, p) }, nil
	})
}

// storeAny stores an entry of whatever kind.
func storeAny(ctx context.Context, c *Cache, a *Archive, p Portable) (err error) {
	if p.Tree {
		_, _, err = c.Tree(ctx, p.Kind, p.Key, func(_ context.Context, dir string) error { return a.Fill(p, dir) })
	} else {
		_, _, err = c.GetOrDownload(ctx, p.Kind, p.Key, func(to string) error { return CopyFile(to, a.Path(p.Files[0].SHA256)) })
	}
	return err
}

// holds lists the files of a cache that are content or name it.
func holds(t *testing.T, c *Cache) (files []string) {
	t.Helper()
	for _, sub := range []string{"blobs", "index", "trees", "tmp"} {
		err := filepath.WalkDir(filepath.Join(c.dir, sub), func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func TestWhatIsExportedIsImported(t *testing.T) {
	from := open(t, t.TempDir(), Options{})
	archive := exported(t, from)
	if again := exported(t, from); !bytes.Equal(archive, again) {
		t.Error("the same entries make other bytes")
	}
	to := open(t, t.TempDir(), Options{Offline: true})
	for range 2 { // what is there already stays
		if err := take(t, to, archive, "", nil); err != nil {
			t.Fatal(err)
		}
	}
	wheel, err := to.Get("wheel", "six")
	if err != nil || mustRead(t, wheel) != "same" {
		t.Error(wheel, err)
	}
	dir, err := to.GetTree("runtime", "deno")
	if err != nil || mustRead(t, filepath.Join(dir, "a/b/c")) != "same" {
		t.Error(dir, err)
	}
	if st, err := os.Stat(filepath.Join(dir, "run")); err != nil || st.Mode().Perm() != 0o500 {
		t.Error(st.Mode(), err)
	}
	if report, err := to.Verify(t.Context()); err != nil || report.Checked != 2 || len(report.Corrupt) > 0 {
		t.Error(report, err)
	}
	if to.Has("snapshot", "made here") {
		t.Error("a kind that was not asked for is there")
	}
	if err := take(t, to, exported(t, from), "", nil); err != nil {
		t.Error(err)
	}
}

// TestACorruptEntryIsNotExported: what is in the cache is verified once more.
func TestACorruptEntryIsNotExported(t *testing.T) {
	c := open(t, t.TempDir(), Options{})
	exported(t, c)
	path, err := c.Get("wheel", "six")
	if err := errors.Join(err, os.Chmod(path, 0o600), os.WriteFile(path, []byte("evil"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if a, err := c.Export(t.Context(), io.Discard, []string{"wheel"}, ownKey); err == nil || !strings.Contains(err.Error(), `wheel "six"`) {
		t.Error(a, err)
	}
}

// packed is a file of an archive that a test forges.
type packed struct {
	tar.Header
	text string
}

func file(name, text string) packed {
	return packed{tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(text)), Mode: 0o644}, text}
}

func pack(t testing.TB, members ...packed) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, m := range members {
		err := w.WriteHeader(&m.Header)
		if err == nil {
			_, err = io.WriteString(w, m.text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// list is an archive's first member.
func list(entries ...string) packed {
	return file(archiveIndexFile, `{"format":1,"platform":"x/y","entries":[`+strings.Join(entries, ",")+`]}`)
}

func treeOf(kind, key string, files ...string) string {
	return fmt.Sprintf(`{"kind":%q,"key":%q,"tree":true,"files":[%s]}`, kind, key, strings.Join(files, ","))
}

func fileOf(path, text string) string {
	return fmt.Sprintf(`{"path":%q,"sha256":%q,"size":%d}`, path, sumOf(text), len(text))
}

// TestForgedArchives: each is refused, and leaves the cache as it was.
func TestForgedArchives(t *testing.T) {
	good := exported(t, open(t, t.TempDir(), Options{}))
	blob := func(key, text string) string {
		return fmt.Sprintf(`{"kind":"wheel","key":%q,"files":[{"path":"","sha256":%q,"size":%d}]}`, key, sumOf(text), len(text))
	}
	a := file(sumOf("a"), "a")
	link := packed{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: sumOf("a"), Linkname: "/etc/passwd"}}
	hard := packed{Header: tar.Header{Typeflag: tar.TypeLink, Name: sumOf("a"), Linkname: "../../format"}}
	device := packed{Header: tar.Header{Typeflag: tar.TypeChar, Name: sumOf("a"), Devmajor: 1, Devminor: 5}}
	badPaths := map[string]string{"": "", "up": "../x", "absolute": "/x", "not clean": "a//b", "dot": ".", "backslash": `a\b`, "zero": "a\x00b", "inner": "a/../../x"}
	rows := map[string]struct {
		archive []byte
		digest  string
		want    string
	}{
		"another digest":      {good, sumOf("x"), "is not the file that was exported"},
		"no archive":          {[]byte("no archive"), "", "not an archive"},
		"nothing":             {nil, "", "not an archive"},
		"truncated":           {good[:len(good)/2], "", "EOF"},
		"more bytes":          {slices.Concat(good, good), "", ""},
		"a later format":      {pack(t, file(archiveIndexFile, `{"format":2}`)), "", "format 2"},
		"no list":             {pack(t, a), "", "where index.json is to be"},
		"no JSON":             {pack(t, file(archiveIndexFile, `[`)), "", "can't be read"},
		"a link":              {pack(t, list(treeOf("k", "x", fileOf("f", "a"))), link), "", "(type '2')"},
		"a hard link":         {pack(t, list(treeOf("k", "x", fileOf("f", "a"))), hard), "", "(type '1')"},
		"a device":            {pack(t, list(treeOf("k", "x", fileOf("f", "a"))), device), "", "(type '3')"},
		"other content":       {pack(t, list(treeOf("k", "x", fileOf("f", "a"))), file(sumOf("a"), "b")), "", "another digest"},
		"other size":          {pack(t, list(treeOf("k", "x", fileOf("f", "a"))), file(sumOf("a"), "bb")), "", "2 bytes, and 1 are listed"},
		"not listed":          {pack(t, list(treeOf("k", "x", fileOf("f", "a"))), a, file(sumOf("b"), "b")), "", "more than it lists"},
		"twice":               {pack(t, list(treeOf("k", "x", fileOf("f", "a"))), a, a), "", "more than it lists"},
		"missing":             {pack(t, list(treeOf("k", "x", fileOf("f", "a")))), "", "EOF"},
		"an entry twice":      {pack(t, list(blob("x", "a"), blob("x", "a")), a), "", "twice"},
		"a path twice":        {pack(t, list(treeOf("k", "x", fileOf("f", "a"), fileOf("f", "a"))), a), "", "twice"},
		"file and directory":  {pack(t, list(treeOf("k", "x", fileOf("f/g", "a"), fileOf("f", "a"))), a), "", "twice"},
		"directory and file":  {pack(t, list(treeOf("k", "x", fileOf("f", "a"), fileOf("f/g", "a"))), a), "", "a file and a directory"},
		"a bad kind":          {pack(t, list(treeOf("../k", "x")), a), "", "malformed"},
		"a long key":          {pack(t, list(treeOf("k", strings.Repeat("x", maxArchiveKey+1))), a), "", "malformed"},
		"a blob of two":       {pack(t, list(`{"kind":"k","key":"x","files":[]}`)), "", "is no file"},
		"a blob with a path":  {pack(t, list(`{"kind":"k","key":"x","files":[`+fileOf("f", "a")+`]}`), a), "", "is no file"},
		"a digest as a path":  {pack(t, list(`{"kind":"k","key":"x","files":[{"sha256":"../../x","size":1}]}`)), "", "malformed"},
		"two sizes":           {pack(t, list(blob("x", "a"), strings.Replace(blob("y", "a"), `"size":1`, `"size":2`, 1)), a), "", "malformed"},
		"a negative size":     {pack(t, list(strings.Replace(blob("x", "a"), `"size":1`, `"size":-1`, 1)), a), "", "malformed"},
		"too much, by one":    {pack(t, list(strings.Replace(blob("x", "a"), `"size":1`, `"size":999999999999`, 1)), a), "", "malformed"},
		"too much, by many":   {pack(t, list(strings.Replace(blob("x", "a"), `"size":1`, `"size":34000000000`, 1), strings.Replace(blob("y", "b"), `"size":1`, `"size":34000000000`, 1)), a), "", "32 GiB"},
		"a bomb after it":     {bombAfter(t, pack(t, list(treeOf("k", "x", fileOf("f", "a"))), a)), "", "goes on after its end"},
		"a list that is long": {pack(t, file(archiveIndexFile, strings.Repeat(" ", maxArchiveIndex+1))), "", "too large"},
	}
	for name, path := range badPaths {
		rows["path, "+name] = struct {
			archive []byte
			digest  string
			want    string
		}{pack(t, list(treeOf("k", "x", strings.Replace(fileOf("PATH", "a"), `"PATH"`, jsonText(path), 1))), a), "", "is not the path of a file"}
	}
	c := open(t, t.TempDir(), Options{})
	if err := take(t, c, good, "", nil); err != nil {
		t.Fatal(err)
	}
	before := holds(t, c)
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			err := take(t, c, row.archive, row.digest, nil)
			if row.want == "" { // what follows a whole archive is in its digest, and is not looked at
				if err != nil {
					t.Error(err)
				}
			} else if err == nil || !strings.Contains(err.Error(), row.want) || len(err.Error()) > 1000 {
				t.Errorf("err %v, want %q", err, row.want)
			}
			if now := holds(t, c); !slices.Equal(now, before) {
				t.Errorf("the cache holds %q now", now)
			}
		})
	}
	t.Run("an entry that is not admitted", func(t *testing.T) {
		more := pack(t, list(blob("new", "a"), treeOf("k", "x", fileOf("f", "a"))), a)
		err := take(t, c, more, "", func(p Portable) error {
			if p.Tree {
				return ErrNotPortable
			}
			return nil
		})
		if !errors.Is(err, ErrNotPortable) || !slices.Equal(holds(t, c), before) {
			t.Errorf("%v, %q", err, holds(t, c))
		}
	})
}

func jsonText(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

// bombAfter adds 4 MiB of zeros to what an archive unpacks to.
func bombAfter(t *testing.T, archive []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(append(text, make([]byte, 4<<20)...)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestAnArchiveThatChangesIsNotTaken: it is read twice.
func TestAnArchiveThatChangesIsNotTaken(t *testing.T) {
	archive := exported(t, open(t, t.TempDir(), Options{}))
	path := filepath.Join(t.TempDir(), "archive")
	if err := os.WriteFile(path, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := open(t, t.TempDir(), Options{})
	other := pack(t, list(treeOf("k", "x")))
	err = c.Import(swapContext{t.Context(), func() { _ = os.WriteFile(path, other, 0o600) }}, f, sumOf(string(archive)), func(*Archive, Portable) (func(context.Context) error, error) {
		t.Error("an entry was judged")
		return nil, nil
	})
	if err == nil || !strings.Contains(err.Error(), "it changed while it was read") || len(holds(t, c)) > 0 {
		t.Errorf("%v, %q", err, holds(t, c))
	}
}

// swapContext does something when it is asked for its end, as between the two reads.
type swapContext struct {
	context.Context
	do func()
}

func (c swapContext) Err() error { c.do(); return c.Context.Err() }

// FuzzReadArchive: whatever an archive is, what comes of it are files of its directory
// that are named by their digests.
func FuzzReadArchive(f *testing.F) {
	f.Add(pack(f, list(treeOf("k", "x", fileOf("f", "a"))), file(sumOf("a"), "a")))
	f.Add(pack(f, list()))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, archive []byte) {
		parent := t.TempDir()
		dir := filepath.Join(parent, "dir")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		a, err := readArchive(t.Context(), bytes.NewReader(archive), dir)
		if err != nil && len(err.Error()) > 2000 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
		if beside, err := os.ReadDir(parent); err != nil || len(beside) != 1 {
			t.Fatalf("%v, %v", beside, err)
		}
		files, readErr := os.ReadDir(dir)
		if readErr != nil {
			t.Fatal(readErr)
		}
		for _, entry := range files {
			if digest, _, hashErr := HashFile(filepath.Join(dir, entry.Name())); err == nil && (hashErr != nil || digest != entry.Name()) || !digestPattern.MatchString(entry.Name()) {
				t.Errorf("%s holds %s", entry.Name(), digest)
			}
		}
		if err != nil {
			return
		}
		for i, p := range a.Entries {
			if !p.Tree {
				continue
			}
			to := filepath.Join(parent, fmt.Sprint(i))
			if err := os.Mkdir(to, 0o700); err != nil {
				t.Fatal(err)
			}
			_ = a.Fill(p, to) // a name can be too long for the file system
		}
	})
}
