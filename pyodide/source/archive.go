// Package source turns what is hostile about building a Python package into what is
// harmless: a source archive of the index becomes a plain tar for the process that
// builds it, and the wheel that comes back becomes one that can be installed like any
// of the index's.
//
// Both are judged in bounded memory and time. An error says what is wrong with them,
// unless it wraps one of reading or writing.
package source

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxArchive and MaxWheel are the largest archive that is read and the largest
	// wheel that is taken, in bytes.
	MaxArchive = 64 << 20
	MaxWheel   = 32 << 20

	maxEntries  = 20_000    // of one archive; the largest known has some 10,000
	maxUnpacked = 192 << 20 // bytes of all of them
	maxPath     = 1024      // bytes of an entry's name
)

// top is the directory that holds all in the tar that Repack writes.
const top = "source"

// builtTime is the modification time of all that is repacked, so that a source's builds
// don't differ by it.
var builtTime = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// Repack reads the source archive in the file archive (.tar.gz or .zip by its name) and
// writes a tar of what is in it: files, directories and links, none of which leads out of
// its one directory.
func Repack(archive *os.File, name string, w io.Writer) error {
	st, err := archive.Stat()
	if err != nil {
		return err
	}
	if st.Size() > MaxArchive {
		return fmt.Errorf("%s has %d bytes, and the largest archive that is built has %d", name, st.Size(), MaxArchive)
	}
	out := repacked{to: tar.NewWriter(w), budget: newBudget()}
	if strings.HasSuffix(name, ".zip") {
		err = out.zip(archive, st.Size())
	} else {
		err = out.tarGz(archive)
	}
	if err == nil && out.top == "" {
		err = errors.New("it is empty")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return out.to.Close()
}

// repacked is the tar that is being written.
type repacked struct {
	to  *tar.Writer
	top string // the archive's one directory
	budget
}

func (r *repacked) tarGz(archive io.Reader) error {
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	// Headers and padding are bounded too.
	all := &io.LimitedReader{R: unzipped, N: maxUnpacked + maxEntries*4096}
	entries := tar.NewReader(all)
	for {
		h, err := entries.Next()
		if all.N == 0 {
			return fmt.Errorf("it unpacks to more than %d bytes", maxUnpacked)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeXGlobalHeader { // as git writes it: a comment
			if err := r.count("a global header", 0); err != nil {
				return err
			}
			continue
		}
		if err := r.add(h, entries); err != nil {
			return err
		}
	}
}

func (r *repacked) zip(archive *os.File, size int64) error {
	entries, err := readZip(archive, size)
	if err != nil {
		return err
	}
	for _, f := range entries {
		h, err := tar.FileInfoHeader(f.FileInfo(), "")
		if err != nil {
			return err
		}
		h.Name = f.Name
		if err := r.addZipped(f, h); err != nil {
			return err
		}
	}
	return nil
}

func (r *repacked) addZipped(f *zip.File, h *tar.Header) error {
	content, err := f.Open()
	if err != nil {
		return fmt.Errorf("%s: %w", shown(f.Name), err)
	}
	defer content.Close()
	if h.Typeflag == tar.TypeSymlink {
		target, err := io.ReadAll(io.LimitReader(content, maxPath+1))
		if err != nil {
			return fmt.Errorf("%s: %w", shown(f.Name), err)
		}
		h.Linkname, h.Size = string(target), 0
	}
	return r.add(h, content)
}

// add writes an entry with its content.
func (r *repacked) add(from *tar.Header, content io.Reader) error {
	if from.Typeflag == tar.TypeDir && path.Clean(from.Name) == "." {
		return r.count(".", 0)
	}
	name, err := inside(from.Name)
	if err != nil {
		return err
	}
	if err := r.count(name, from.Size); err != nil {
		return err
	}
	first, below, _ := strings.Cut(name, "/")
	if r.top == "" {
		r.top = first
	}
	switch {
	case first != r.top:
		return fmt.Errorf("%s is beside %s, and a source archive has one directory that holds all", shown(name), shown(r.top))
	case below == "" && from.Typeflag != tar.TypeDir:
		return fmt.Errorf("%s is in no directory, and a source archive has one that holds all", shown(name))
	}
	h := &tar.Header{Typeflag: from.Typeflag, Name: path.Join(top, below), Mode: 0o644, ModTime: builtTime, Format: tar.FormatPAX}
	switch from.Typeflag {
	case tar.TypeReg:
		h.Size = from.Size
		h.Mode |= from.Mode & 0o111
	case tar.TypeDir:
		h.Name += "/"
		h.Mode = 0o755
	case tar.TypeSymlink:
		if path.IsAbs(from.Linkname) || !r.holds(path.Join(path.Dir(name), from.Linkname)) || unclear(from.Linkname) {
			return fmt.Errorf("%s is a link that leads out of the archive, to %s", shown(name), shown(from.Linkname))
		}
		h.Linkname = from.Linkname
	case tar.TypeLink:
		target, err := inside(from.Linkname)
		if err != nil || !r.holds(target) {
			return fmt.Errorf("%s is a link that leads out of the archive, to %s", shown(name), shown(from.Linkname))
		}
		h.Linkname = top + strings.TrimPrefix(target, r.top)
	default:
		return fmt.Errorf("%s is neither a file nor a directory nor a link", shown(name))
	}
	if err := r.to.WriteHeader(h); err != nil {
		return fmt.Errorf("%s: %w", shown(name), err)
	}
	if h.Size == 0 {
		return nil
	}
	if _, err := io.CopyN(r.to, content, h.Size); err != nil {
		return fmt.Errorf("%s: %w", shown(name), err)
	}
	return nil
}

// holds says that a path is within the archive's one directory.
func (r *repacked) holds(name string) bool {
	return name == r.top || strings.HasPrefix(name, r.top+"/")
}

// budget is what an archive may still unpack to.
type budget struct {
	entries int
	bytes   int64
}

func newBudget() budget { return budget{maxEntries, maxUnpacked} }

// count takes an entry of so many bytes from the budget.
func (b *budget) count(name string, size int64) error {
	if b.entries--; b.entries < 0 {
		return fmt.Errorf("it holds more than %d files", maxEntries)
	}
	if size < 0 || size > b.bytes {
		return fmt.Errorf("with %s it unpacks to more than %d bytes", shown(name), maxUnpacked)
	}
	b.bytes -= size
	return nil
}

// readZip reads the list of a zip's entries.
func readZip(r io.ReaderAt, size int64) ([]*zip.File, error) {
	// Package zip makes a record of each header, whatever the archive says of their number.
	headers, err := countHeaders(io.NewSectionReader(r, 0, size))
	if err != nil {
		return nil, err
	}
	if headers > maxEntries {
		return nil, fmt.Errorf("it holds more than %d files", maxEntries)
	}
	entries, err := zip.NewReader(r, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names are judged with their entries
		return nil, err
	}
	return entries.File, nil
}

// countHeaders counts what may begin an entry of a zip's directory.
func countHeaders(r io.Reader) (count int, err error) {
	signature := []byte("PK\x01\x02")
	kept := 0
	buffer := make([]byte, 64<<10)
	for {
		n, err := r.Read(buffer[kept:])
		text := buffer[:kept+n]
		count += bytes.Count(text, signature)
		kept = copy(buffer, text[max(0, len(text)-len(signature)+1):])
		if errors.Is(err, io.EOF) {
			return count, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// inside is the path of an archive's entry, or an error when it leads elsewhere or can't
// be told.
func inside(name string) (string, error) {
	clean := strings.TrimSuffix(strings.TrimPrefix(name, "./"), "/")
	if !fs.ValidPath(clean) || clean == "." || unclear(clean) {
		return "", fmt.Errorf("%s is no path within the archive", shown(name))
	}
	return clean, nil
}

// unclear says that a path may mean different things to different readers.
func unclear(name string) bool {
	odd := func(r rune) bool { return r == '\\' || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }
	return len(name) > maxPath || !utf8.ValidString(name) || strings.ContainsFunc(name, odd)
}

// shown is a name in an error.
func shown(name string) string { return fmt.Sprintf("%.120q", name) }
