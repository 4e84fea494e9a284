package cache

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// An archive takes entries from one cache to another. It is a tar file, compressed with
// gzip. Its first file, index.json, lists the entries; the others are what they hold, each
// content once, named by its digest and in the order of that. So no name in it becomes a
// path, and the same entries make the same bytes.

// archiveFormat is the version of the layout above.
const archiveFormat = 1

const (
	archiveIndexFile = "index.json"
	maxArchiveIndex  = 32 << 20 // bytes
	maxArchiveFiles  = 300_000  // of all entries
	maxArchiveKey    = 64 << 10 // bytes
	maxArchiveBytes  = 32 << 30 // unpacked
)

// Archive is one that is being imported.
type Archive struct {
	// Platform is that of the cache that it was made from: "linux/amd64".
	Platform string     `json:"platform"`
	Format   int        `json:"format"`
	Entries  []Portable `json:"entries"`

	dir   string           // has each content, by its digest
	sizes map[string]int64 // of the contents
}

// Portable is an entry in an archive.
type Portable struct {
	Kind string `json:"kind"`
	Key  string `json:"key"`
	// Tree says that it is a directory; else it is a blob, the only one of Files, without a
	// path.
	Tree  bool           `json:"tree,omitempty"`
	Files []manifestFile `json:"files"`
}

func (p Portable) String() string { return fmt.Sprintf("%s %.200q", p.Kind, p.Key) }

// Digest tells contents of trees apart.
func (p Portable) Digest() string {
	text, _ := json.Marshal(p.Files) // strings and numbers can be written
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// ErrNotPortable means that entries of a kind can't be imported.
var ErrNotPortable = errors.New("it is of no kind that can be imported")

// Export writes an archive of the entries of these kinds that this process has used. keyOf
// gives an entry's key in the archive, where it is to say less than its own.
func (c *Cache) Export(ctx context.Context, w io.Writer, kinds []string, keyOf func(kind, key string) string) (Archive, error) {
	a := Archive{Platform: runtime.GOOS + "/" + runtime.GOARCH, Format: archiveFormat}
	contents, err := c.portables(&a, kinds, keyOf)
	if err == nil {
		err = a.write(ctx, w, contents)
	}
	if err != nil {
		return a, fmt.Errorf("export from the cache in %s: %w", c.dir, err)
	}
	return a, nil
}

// portables lists what this process has used, and where its contents are, by digest.
func (c *Cache) portables(a *Archive, kinds []string, keyOf func(kind, key string) string) (contents map[string]string, err error) {
	if c.live.refused != nil {
		return nil, fmt.Errorf("it can't be written to, so nothing tells what was used: %w", c.live.refused)
	}
	contents = map[string]string{}
	for _, name := range c.live.entries() {
		parts := strings.Split(filepath.ToSlash(name), "/") // index or trees, the kind, the key's digest
		if len(parts) != 3 || !slices.Contains(kinds, parts[1]) {
			continue
		}
		p, read := Portable{Kind: parts[1], Tree: parts[0] == "trees"}, c.readBlob
		if p.Tree {
			read = c.readTree
		}
		e, err := verify(filepath.Join(c.dir, name), read)
		if errors.Is(err, fs.ErrNotExist) { // it was removed since
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", p.Kind, e.key, err)
		}
		if p.Key = keyOf(p.Kind, e.key); !p.Tree {
			digest := filepath.Base(e.blob)
			p.Files, contents[digest] = []manifestFile{{SHA256: digest, Size: e.size}}, e.blob
		} else {
			var m manifest
			if _, err := readJSON(e.record, &m); err != nil {
				return nil, fmt.Errorf("%s %q: %w", p.Kind, e.key, err)
			}
			p.Files = m.Files
			for _, f := range m.Files {
				contents[f.SHA256] = filepath.Join(e.content, filepath.FromSlash(f.Path))
			}
		}
		a.Entries = append(a.Entries, p)
	}
	slices.SortFunc(a.Entries, func(a, b Portable) int {
		return strings.Compare(a.Kind+"\x00"+a.Key, b.Kind+"\x00"+b.Key)
	})
	return contents, nil
}

func (a Archive) write(ctx context.Context, w io.Writer, contents map[string]string) error {
	sizes, err := a.check()
	if err != nil {
		return err
	}
	index, err := json.Marshal(a)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed) // a tenth larger, and a third of the time
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	header := func(name string, size int64) error {
		return t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, Format: tar.FormatPAX})
	}
	if err := header(archiveIndexFile, int64(len(index))); err != nil {
		return err
	}
	if _, err := t.Write(index); err != nil {
		return err
	}
	for _, digest := range slices.Sorted(maps.Keys(sizes)) {
		if err := errors.Join(ctx.Err(), header(digest, sizes[digest])); err != nil {
			return err
		}
		f, err := os.Open(contents[digest])
		if err != nil {
			return err
		}
		h := sha256.New()
		_, err = copyWhole(io.MultiWriter(t, h), f)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		if hex.EncodeToString(h.Sum(nil)) != digest {
			return fmt.Errorf("%s changed meanwhile", f.Name())
		}
	}
	return errors.Join(t.Close(), z.Close())
}

// check says what is wrong with an archive's list of entries, and gives the size of each
// content, by its digest.
func (a Archive) check() (sizes map[string]int64, err error) {
	if a.Format != archiveFormat {
		return nil, fmt.Errorf("it has format %d, and this version of Rillbox knows %d: use the version that made it", a.Format, archiveFormat)
	}
	sizes = map[string]int64{}
	seen := map[string]bool{}
	files, total := 0, int64(0)
	for _, p := range a.Entries {
		name := fmt.Sprintf("%s %t %s", p.Kind, p.Tree, p.Key)
		switch files += len(p.Files); {
		case !kindPattern.MatchString(p.Kind), len(p.Key) > maxArchiveKey:
			return nil, fmt.Errorf("its entry %s is malformed", p)
		case seen[name]:
			return nil, fmt.Errorf("its entry %s is there twice", p)
		case files > maxArchiveFiles:
			return nil, fmt.Errorf("it has more than %d files", maxArchiveFiles)
		case !p.Tree && (len(p.Files) != 1 || p.Files[0].Path != "" || p.Files[0].Executable):
			return nil, fmt.Errorf("its entry %s is no file", p)
		}
		seen[name] = true
		if p.Tree {
			if err := checkPaths(p.Files); err != nil {
				return nil, fmt.Errorf("its entry %s: %w", p, err)
			}
		}
		for _, f := range p.Files {
			size, known := sizes[f.SHA256]
			if !digestPattern.MatchString(f.SHA256) || f.Size < 0 || f.Size > maxArchiveBytes || known && size != f.Size {
				return nil, fmt.Errorf("its entry %s: the digest or size of %.200q is malformed", p, f.Path)
			}
			if sizes[f.SHA256] = f.Size; !known {
				total += f.Size
			}
			if total > maxArchiveBytes {
				return nil, fmt.Errorf("it holds more than %d GiB", maxArchiveBytes>>30)
			}
		}
	}
	return sizes, nil
}

// checkPaths refuses paths that don't name different files below one directory.
func checkPaths(files []manifestFile) error {
	names := map[string]bool{} // true for files, false for the directories that they are in
	for _, f := range files {
		if !filepath.IsLocal(filepath.FromSlash(f.Path)) || path.Clean(f.Path) != f.Path || f.Path == "." || strings.ContainsAny(f.Path, "\\\x00") || len(f.Path) > 4096 {
			return fmt.Errorf("%.200q is not the path of a file below it", f.Path)
		}
		if _, taken := names[f.Path]; taken {
			return fmt.Errorf("%.200q is there twice", f.Path)
		}
		names[f.Path] = true
		for dir := path.Dir(f.Path); dir != "."; dir = path.Dir(dir) {
			if names[dir] {
				return fmt.Errorf("%.200q is a file and a directory", dir)
			}
			names[dir] = false
		}
	}
	return nil
}

// Import takes the entries of the archive in f, which must have the digest (sha256, in
// hex), into the cache. admit judges each by itself; what it returns stores the entry, and
// is nil for one that is left out. Nothing is stored before all of the archive was read and
// each entry judged.
func (c *Cache) Import(ctx context.Context, f *os.File, digest string, admit func(a *Archive, p Portable) (store func(context.Context) error, err error)) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return errors.New("it is not a file")
	}
	hash := sha256.New()
	if _, err := copyWhole(hash, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != digest {
		return fmt.Errorf("refused, as its sha256 is %s, and not %s: it is not the file that was exported", got, digest)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	dir, err := c.tempDir("import-")
	if err != nil {
		return err
	}
	defer removeAll(dir)
	hash.Reset()
	again := io.TeeReader(f, hash)
	a, err := readArchive(ctx, again, dir)
	if err == nil {
		_, err = io.Copy(io.Discard, again)
	}
	if err != nil {
		return err
	}
	if hex.EncodeToString(hash.Sum(nil)) != digest {
		return errors.New("refused, as it changed while it was read")
	}
	var stores []func(context.Context) error
	for _, p := range a.Entries {
		store, err := admit(a, p)
		if err != nil {
			return fmt.Errorf("refused, for its entry %s: %w", p, err)
		}
		if store != nil {
			stores = append(stores, store)
		}
	}
	for _, store := range stores {
		if err := store(ctx); err != nil {
			return err
		}
	}
	return nil
}

// readArchive reads an archive, and puts each content into a file of dir that has its
// digest as its name.
func readArchive(ctx context.Context, r io.Reader, dir string) (*Archive, error) {
	z, err := gzip.NewReader(bufio.NewReader(r))
	if err != nil {
		return nil, fmt.Errorf("it is not an archive: %w", err)
	}
	z.Multistream(false)
	t := tar.NewReader(z)
	next := func(name string) (*tar.Header, error) {
		h, err := t.Next()
		if err != nil {
			return nil, fmt.Errorf("it is not an archive: %w", err)
		}
		if h.Typeflag != tar.TypeReg || h.Name != name {
			return nil, fmt.Errorf("it has %.100q (type %q) where %s is to be", h.Name, h.Typeflag, name)
		}
		return h, nil
	}
	h, err := next(archiveIndexFile)
	if err != nil {
		return nil, err
	}
	if h.Size > maxArchiveIndex {
		return nil, errors.New("its list of entries is too large")
	}
	a := &Archive{dir: dir}
	index, err := io.ReadAll(t)
	if err == nil {
		err = json.Unmarshal(index, a)
	}
	if err != nil {
		return nil, fmt.Errorf("its list of entries can't be read: %w", err)
	}
	if a.sizes, err = a.check(); err != nil {
		return nil, err
	}
	for _, digest := range slices.Sorted(maps.Keys(a.sizes)) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h, err := next(digest)
		if err != nil {
			return nil, err
		}
		if h.Size != a.sizes[digest] {
			return nil, fmt.Errorf("%s in it has %d bytes, and %d are listed", digest, h.Size, a.sizes[digest])
		}
		got, err := blobWriter(func(w io.Writer) error {
			_, err := io.Copy(w, t)
			return err
		})(filepath.Join(dir, digest))
		if err != nil {
			return nil, fmt.Errorf("unpack it: %w", err)
		}
		if got != digest {
			return nil, fmt.Errorf("%s in it has another digest, %s", digest, got)
		}
	}
	if _, err := t.Next(); err != io.EOF {
		return nil, errors.New("it holds more than it lists")
	}
	if n, err := io.Copy(io.Discard, io.LimitReader(z, 1<<20)); err != nil || n == 1<<20 {
		return nil, errors.New("it goes on after its end")
	}
	return a, nil
}

// Path is where a content of the archive is, by its digest, until Import returns; empty if
// it has none of that digest.
func (a *Archive) Path(digest string) string {
	if _, has := a.sizes[digest]; !has {
		return ""
	}
	return filepath.Join(a.dir, digest)
}

// Fill makes the files of an entry, a tree, in an empty directory.
func (a *Archive) Fill(p Portable, dir string) error {
	for _, f := range p.Files {
		from, to := a.Path(f.SHA256), filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		var err error
		if f.Executable { // no other entry's file is to be
			err = errors.Join(CopyFile(to, from), os.Chmod(to, 0o700))
		} else if os.Link(from, to) != nil {
			err = CopyFile(to, from)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
