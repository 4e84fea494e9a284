package source

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// entry is one of an archive; a file, or what its header says.
type entry struct {
	name, text string
	header     tar.Header
}

func tarGz(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for _, e := range entries {
		h := e.header
		h.Name = cmp.Or(h.Name, e.name)
		h.Typeflag = cmp.Or(h.Typeflag, tar.TypeReg)
		h.Size = cmp.Or(h.Size, int64(len(e.text)))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.text); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Close() // what it says of a file that lacks content is meant
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(fs.FileMode(e.header.Mode) | 0o644)
		if e.header.Typeflag == tar.TypeSymlink {
			h.SetMode(fs.ModeSymlink)
		}
		to, err := w.CreateHeader(h)
		if err == nil {
			_, err = io.WriteString(to, e.text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// repack is what Repack makes of an archive: its entries, one a line.
func repack(t testing.TB, name string, archive []byte) (lines []string, err error) {
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
	var out bytes.Buffer
	if err := Repack(f, name, &out); err != nil {
		return nil, err
	}
	r := tar.NewReader(&out)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%c %o %s", h.Typeflag, h.Mode, h.Name)
		if h.Linkname != "" {
			line += " -> " + h.Linkname
		}
		if len(text) > 0 {
			line += " " + string(text)
		}
		lines = append(lines, line)
	}
}

func TestRepack(t *testing.T) {
	long := "a-1.0/" + strings.Repeat("long/", 60) + "é.py"
	for _, test := range []struct {
		name    string
		archive []byte
		want    []string
	}{
		{"a-1.0.tar.gz", tarGz(t,
			entry{header: tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}}},
			entry{name: "./", header: tar.Header{Typeflag: tar.TypeDir}},
			entry{name: "./a-1.0/", header: tar.Header{Typeflag: tar.TypeDir, Mode: 0o7777}},
			entry{name: "./a-1.0/setup.py", text: "x", header: tar.Header{Mode: 0o6755, Uid: 7, Uname: "me"}},
			entry{name: long, text: "y"},
			entry{name: "a-1.0/docs/link", header: tar.Header{Typeflag: tar.TypeSymlink, Linkname: "../setup.py"}},
			entry{name: "a-1.0/hard", header: tar.Header{Typeflag: tar.TypeLink, Linkname: "a-1.0/setup.py"}},
		), []string{
			"5 755 source/", "0 755 source/setup.py x", "0 644 source/" + long[6:] + " y",
			"2 644 source/docs/link -> ../setup.py", "1 644 source/hard -> source/setup.py",
		}},
		{"a-1.0.zip", zipped(t, entry{name: "a-1.0/"}, entry{name: "a-1.0/setup.py", text: "x"}, entry{
			name: "a-1.0/l", text: "setup.py", header: tar.Header{Typeflag: tar.TypeSymlink},
		}), []string{"5 755 source/", "0 644 source/setup.py x", "2 644 source/l -> setup.py"}},
	} {
		got, err := repack(t, test.name, test.archive)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: %v\ngot  %q\nwant %q", test.name, err, got, test.want)
		}
	}
}

// TestRepackRefuses: an archive with a trick is refused, whatever else is in it.
func TestRepackRefuses(t *testing.T) {
	many := make([]entry, maxEntries+1)
	for i := range many {
		many[i].name = fmt.Sprintf("a/%d", i)
	}
	tricks := map[string]struct {
		entries []entry
		want    string
	}{
		"an absolute path":            {[]entry{{name: "/etc/passwd"}}, "no path within"},
		"a path that leads out":       {[]entry{{name: "a/../../x"}}, "no path within"},
		"one of Windows":              {[]entry{{name: `a/..\..\x`}}, "no path within"},
		"an empty part":               {[]entry{{name: "a//x"}}, "no path within"},
		"a control character":         {[]entry{{name: "a/x\x1b[2J"}}, "no path within"},
		"a name from right to left":   {[]entry{{name: "a/x\u202eyp.tar"}}, "no path within"},
		"a name that is not UTF-8":    {[]entry{{name: "a/\xff"}}, "no path within"},
		"a name without an end":       {[]entry{{name: "a/" + strings.Repeat("x", maxPath)}}, "no path within"},
		"two directories":             {[]entry{{name: "a/x"}, {name: "b/x"}}, "is beside"},
		"no directory":                {[]entry{{name: "setup.py"}}, "is in no directory"},
		"nothing":                     {nil, "it is empty"},
		"many files":                  {many, "more than 20000 files"},
		"a link out of it":            {[]entry{{name: "a/x", text: "../../etc", header: tar.Header{Typeflag: tar.TypeSymlink}}}, "leads out"},
		"a link to beside it":         {[]entry{{name: "a/x", text: "../ab", header: tar.Header{Typeflag: tar.TypeSymlink}}}, "leads out"},
		"an absolute link":            {[]entry{{name: "a/x", text: "/a/y", header: tar.Header{Typeflag: tar.TypeSymlink}}}, "leads out"},
		"a link without an end":       {[]entry{{name: "a/x", text: strings.Repeat("y", 2*maxPath), header: tar.Header{Typeflag: tar.TypeSymlink}}}, "leads out"},
		"a hard link out":             {[]entry{{name: "a/x", header: tar.Header{Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}}}, "leads out"},
		"a hard link to beside it":    {[]entry{{name: "a/x", header: tar.Header{Typeflag: tar.TypeLink, Linkname: "b/y"}}}, "leads out"},
		"a device":                    {[]entry{{name: "a/x", header: tar.Header{Typeflag: tar.TypeBlock}}}, "neither a file"},
		"a named pipe":                {[]entry{{name: "a/x", header: tar.Header{Typeflag: tar.TypeFifo}}}, "neither a file"},
		"a file of 8 EiB":             {[]entry{{name: "a/x", header: tar.Header{Size: 1<<63 - 1}}}, "unpacks to more than"},
		"files that are too much":     {[]entry{{name: "a/x", header: tar.Header{Size: maxUnpacked + 1}}}, "unpacks to more than"},
		"a file that ends before":     {[]entry{{name: "a/x", header: tar.Header{Size: 10_000}}}, "unexpected EOF"},
		"what is a file and more":     {[]entry{{name: "a", text: "x"}, {name: "a/x"}}, "is in no directory"},
		"a global header for nothing": {[]entry{{header: tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}}}}, "it is empty"},
	}
	for name, trick := range tricks {
		t.Run(name, func(t *testing.T) {
			archives := map[string][]byte{}
			onlyTar := slices.ContainsFunc(trick.entries, func(e entry) bool {
				return e.header.Size > 0 || !slices.Contains([]byte{0, tar.TypeSymlink}, e.header.Typeflag) || e.header.PAXRecords != nil
			})
			if !onlyTar {
				archives["a.zip"] = zipped(t, trick.entries...)
			}
			entries := slices.Clone(trick.entries)
			for i := range entries {
				if e := &entries[i]; e.header.Typeflag == tar.TypeSymlink {
					e.header.Linkname, e.text = e.text, ""
				}
			}
			archives["a.tar.gz"] = tarGz(t, entries...)
			for file, archive := range archives {
				if _, err := repack(t, file, archive); err == nil || !strings.Contains(err.Error(), trick.want) {
					t.Errorf("%s: error %v, want %q", file, err, trick.want)
				}
			}
		})
	}
	// A header of 2 MiB: an extended one (PAX), which is a file of another type.
	header := untarred(t, tarGz(t, entry{name: "x", text: "2097152 path=a/" + strings.Repeat("x", 2<<20)}))
	header[156] = tar.TypeXHeader
	copy(header[148:156], fmt.Sprintf("%06o\x00 ", sumOf(header[:512])))
	if _, err := repack(t, "a.tar.gz", gzipped(t, header)); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a long header: error %v", err)
	}
	for file, text := range map[string]string{"a.tar.gz": "not an archive", "a.zip": "PK\x05\x06", "b.tar.gz": "\x1f\x8b\x08\x00garbage"} {
		if _, err := repack(t, file, []byte(text)); err == nil {
			t.Errorf("%s holding %q is taken", file, text)
		}
	}
}

// TestRepackTakesLittleMemory: the list of a zip's files is not made before it is known
// to be short, whatever the archive says of their number.
func TestRepackTakesLittleMemory(t *testing.T) {
	header := "PK\x01\x02" + strings.Repeat("\x00", 42)
	archive := strings.Repeat(header, 1_000_000) + "PK\x05\x06\x00\x00\x00\x00\x01\x00\x01\x00" +
		string([]byte{0x80, 0xe3, 0xbd, 0x02, 0, 0, 0, 0, 0, 0}) // 46 000 000 bytes from 0
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readZip(strings.NewReader(archive), int64(len(archive)))
	runtime.ReadMemStats(&after)
	if err == nil || after.TotalAlloc-before.TotalAlloc > 1<<20 {
		t.Errorf("error %v after %d bytes", err, after.TotalAlloc-before.TotalAlloc)
	}
}

func FuzzRepack(f *testing.F) {
	f.Add(true, []byte("PK"))
	f.Add(true, zipped(f, entry{name: "a/x", text: "y"}))
	f.Add(false, untarred(f, tarGz(f, entry{name: "a/x", text: "y"}, entry{name: "a/l", header: tar.Header{Typeflag: tar.TypeSymlink, Linkname: "x"}})))
	f.Fuzz(func(t *testing.T, isZip bool, archive []byte) {
		name := "a.zip"
		if !isZip {
			name, archive = "a.tar.gz", gzipped(t, archive)
		}
		lines, err := repack(t, name, archive)
		if err != nil {
			return
		}
		for _, line := range lines {
			path, target, _ := strings.Cut(strings.SplitN(line, " ", 3)[2], " -> ")
			if !strings.HasPrefix(path, "source/") || strings.Contains(path, "/../") || strings.HasPrefix(target, "/") {
				t.Errorf("the tar has %q", line)
			}
		}
	})
}

func gzipped(t testing.TB, text []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(text)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sumOf is the checksum of a tar's header.
func sumOf(header []byte) (sum int) {
	for i, b := range header {
		if 148 <= i && i < 156 {
			b = ' '
		}
		sum += int(b)
	}
	return sum
}

func untarred(t testing.TB, archive []byte) []byte {
	r, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
