package source

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
)

const metadata = "Metadata-Version: 2.4\r\nName: A.b\r\nVersion: 1.0.0\r\n\r\nName: other\n"

// files reads a zip.
func files(t testing.TB, archive []byte) map[string]string {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, f := range r.File {
		text, err := fs.ReadFile(r, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		found[f.Name] = string(text)
	}
	return found
}

func TestWheel(t *testing.T) {
	built := zipped(t,
		entry{name: "a/"}, entry{name: "a/b.py", text: "x"}, entry{name: "a/data,1.txt", text: "y"},
		entry{name: "A_b-1.0.dist-info/RECORD", text: "forged,,"}, entry{name: "A_b-1.0.dist-info/RECORD.jws"},
		entry{name: "A_b-1.0.dist-info/WHEEL", text: "Tag: cp314-cp314-linux_x86_64"},
		entry{name: "A_b-1.0.dist-info/METADATA", text: metadata}, entry{name: "a_B-1.data/scripts/run", text: "z"})
	var out bytes.Buffer
	if err := Wheel(built, "a-b", "1.0", &out); err != nil {
		t.Fatal(err)
	}
	got := files(t, out.Bytes())
	sum := func(text string) string {
		digest := sha256.Sum256([]byte(text))
		return fmt.Sprintf("sha256=%s,%d", base64.RawURLEncoding.EncodeToString(digest[:]), len(text))
	}
	want := map[string]string{
		"a/b.py": "x", "a/data,1.txt": "y", "a_B-1.data/scripts/run": "z",
		"A_b-1.0.dist-info/METADATA": metadata, "A_b-1.0.dist-info/WHEEL": wheelText,
		"A_b-1.0.dist-info/RECORD": "a/b.py," + sum("x") + "\n\"a/data,1.txt\"," + sum("y") + "\nA_b-1.0.dist-info/METADATA," + sum(metadata) +
			"\na_B-1.data/scripts/run," + sum("z") + "\nA_b-1.0.dist-info/WHEEL," + sum(wheelText) + "\nA_b-1.0.dist-info/RECORD,,\n",
	}
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: got %q, want %q", name, got[name], text)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d files, want %d", len(got), len(want))
	}
	var again bytes.Buffer
	if err := Wheel(built, "a-b", "1.0", &again); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
		t.Errorf("a second time it is another wheel: %v", err)
	}
	if name := WheelName("A.b-C", "1.0"); name != "a_b_c-1.0-py3-none-any.whl" {
		t.Errorf("it is called %s", name)
	}
}

// TestWheelRefuses: what is no pure wheel of the source's name and version is refused.
func TestWheelRefuses(t *testing.T) {
	info := entry{name: "a_b-1.0.dist-info/METADATA", text: metadata}
	many := []entry{info}
	for i := range maxEntries {
		many = append(many, entry{name: fmt.Sprint(i)})
	}
	for name, test := range map[string]struct {
		entries []entry
		want    string
	}{
		"nothing":                   {nil, "no dist-info directory"},
		"no metadata":               {[]entry{{name: "a_b-1.0.dist-info/WHEEL"}}, `it is "" ""`},
		"another package":           {[]entry{info, {name: "requests-1.0.dist-info/METADATA"}}, "is to be a-b 1.0"},
		"another's data":            {[]entry{info, {name: "requests-1.0.data/purelib/x"}}, "is to be a-b 1.0"},
		"another version":           {[]entry{{name: "a_b-2.0.dist-info/METADATA", text: metadata}}, "is to be a-b 1.0"},
		"two spellings":             {[]entry{info, {name: "A.b-1.dist-info/x"}}, "has both"},
		"another's metadata":        {[]entry{{name: info.name, text: "Name: requests\nVersion: 1.0\n"}}, `it is "requests" "1.0"`},
		"two names":                 {[]entry{{name: info.name, text: "Name: a-b\nName: requests\nVersion: 1.0\n"}}, `it is "a-b, requests"`},
		"another version within":    {[]entry{{name: info.name, text: "Name: a-b\nVersion: 1.0.1\n"}}, `"1.0.1"`},
		"metadata without an end":   {[]entry{{name: info.name, text: metadata + strings.Repeat("x", maxMetadata)}}, `it is "" ""`},
		"native code":               {[]entry{info, {name: "a/_c.cpython-314-x86_64-linux-gnu.so"}}, "native code"},
		"a library":                 {[]entry{info, {name: "a/libx.so.1.2"}}, "native code"},
		"a path that leads out":     {[]entry{info, {name: "../../x.py"}}, "no path within"},
		"an absolute path":          {[]entry{info, {name: "/lib/x.py"}}, "no path within"},
		"a path of two spellings":   {[]entry{info, {name: "./a.py"}}, "no ordinary file"},
		"one of Windows":            {[]entry{info, {name: `..\x.py`}}, "no path within"},
		"a link":                    {[]entry{info, {name: "a", text: "/etc", header: tar.Header{Typeflag: tar.TypeSymlink}}}, "no ordinary file"},
		"a name twice":              {[]entry{info, {name: "a.py"}, {name: "a.py", text: "x"}}, "twice"},
		"many files":                {many, "more than 20000 files"},
		"a bomb":                    {[]entry{info, {name: "a", text: strings.Repeat("\x00", maxUnpacked+1)}}, "unpacks to more than"},
		"a name from right to left": {[]entry{info, {name: "a\u202e.py"}}, "no path within"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Wheel(zipped(t, test.entries...), "a-b", "1.0", io.Discard); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	// A file that is larger than its header says.
	liar := zipped(t, info, entry{name: "a.txt", text: strings.Repeat("x", 1000)})
	at := bytes.LastIndex(liar, []byte{0xe8, 0x03, 0, 0}) // 1000, in the directory
	liar[at] = 0xe7
	if err := Wheel(liar, "a-b", "1.0", io.Discard); err == nil {
		t.Error("a file that is larger than it says is taken")
	}
}

func TestSameVersion(t *testing.T) {
	same := [][]string{
		{"1.0", "1", "1.0.0", "v1.0", "01.0", "0!1"},
		{"1.0b1", "1.0-beta1", "1.0.beta.1", "1b01", "1.0_B1"},
		{"1.0rc1", "1.0c1", "1.0-pre-1", "1.0preview1"},
		{"1.0.post2", "1.0-2", "1.0-r2", "1.0rev2"},
		{"1.0.dev0", "1.0-dev", "1.0dev"},
		{"1.0a0.post1.dev2", "1.0a-post1dev2"},
		{"1.0+ubuntu.1", "1.0+ubuntu-01", "1.0+Ubuntu_1"},
		{"2!1.0"}, {"1.0.1"}, {"10"}, {"2024.1.2"},
	}
	for i, group := range same {
		for _, a := range group {
			for j, others := range same {
				for _, b := range others {
					if SameVersion(a, b) != (i == j) {
						t.Errorf("SameVersion(%q, %q) = %v", a, b, i != j)
					}
				}
			}
		}
	}
	for _, text := range []string{"", "x", "1.0-final-1", "1..0", "1.0+", "1.0 2", "1.0/2"} {
		if SameVersion(text, text) {
			t.Errorf("%q is a version", text)
		}
	}
}

func FuzzSameVersion(f *testing.F) {
	f.Add("1.0-beta1+x", "v1")
	f.Fuzz(func(t *testing.T, a, b string) {
		form, ok := canonical(a)
		if again, still := canonical(form); ok && (!still || again != form) {
			t.Errorf("%q becomes %q, and that %q", a, form, again)
		}
		if SameVersion(a, b) != SameVersion(b, a) {
			t.Errorf("%q and %q are the same in one direction", a, b)
		}
	})
}

func FuzzWheel(f *testing.F) {
	f.Add(zipped(f, entry{name: "a_b-1.0.dist-info/METADATA", text: metadata}, entry{name: "a.py", text: "x"}))
	f.Fuzz(func(t *testing.T, built []byte) {
		var out bytes.Buffer
		if Wheel(built, "a-b", "1.0", &out) != nil {
			return
		}
		found := files(t, out.Bytes())
		records := 0
		for name := range found {
			info, isRecord := strings.CutSuffix(name, "/RECORD")
			if !isRecord {
				continue
			}
			records++
			rows, err := csv.NewReader(strings.NewReader(found[name])).ReadAll()
			if err != nil || len(rows) != len(found) || found[info+"/WHEEL"] != wheelText {
				t.Errorf("%d files, %d recorded (%v)", len(found), len(rows), err)
			}
		}
		if records == 0 {
			t.Error("there is no RECORD")
		}
	})
}
