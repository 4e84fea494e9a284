package workspace

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Written is what became of a Write.
type Written struct {
	// Name is the file's path from the workspace.
	Name string
	// Created says that nothing of the name was there before.
	Created bool
}

// Write makes or replaces a file, and the folders that it needs. What stood
// there before is replaced as a whole: also a symbolic link, which is not
// followed, or a FIFO; only a folder is refused. The file has either its old
// content or all of data, whatever happens.
func (d *Dir) Write(name string, data []byte) (Written, error) {
	local, err := d.writable(name)
	if err != nil {
		return Written{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.write(local, name, data)
}

// write writes one file within the limits. The caller holds mu.
func (d *Dir) write(local, name string, data []byte) (Written, error) {
	if err := d.fits(name, 1+d.missingFolders(local), int64(len(data))); err != nil {
		return Written{}, err
	}
	_, err := d.root.Lstat(local)
	w := Written{local, errors.Is(err, fs.ErrNotExist)}
	return w, d.put(local, name, data, true)
}

// WriteNew writes a file under the first name that is free: before, a number from 1
// on, and after.
func (d *Dir) WriteNew(before, after string, data []byte) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for number := 1; ; number++ {
		name := fmt.Sprint(before, number, after)
		local, err := d.writable(name)
		if err != nil {
			return File{}, err
		}
		if _, err := d.root.Lstat(local); err == nil {
			continue
		}
		if _, err := d.write(local, name, data); err != nil {
			return File{}, err
		}
		return regular(local, int64(len(data)), time.Now()), nil
	}
}

// WriteAll writes files, name to content, for a program that is about to run in
// the directory. All names and sizes are checked before the first is written;
// after another error, some are. Unlike Write, it does not wait for the disk:
// what ends the machine ends the run that the files are for.
func (d *Dir) WriteAll(files map[string][]byte) error {
	given := make(map[string]string, len(files)) // path → name
	var bytes int64
	for _, name := range slices.Sorted(maps.Keys(files)) {
		local, err := d.writable(name)
		if err != nil {
			return err
		}
		if other, ok := given[local]; ok {
			return refuse("%s and %s are the same file", quote(other), quote(name))
		}
		given[local] = name
		bytes += int64(len(files[name]))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	entries := int64(len(files)) + d.missingFolders(slices.Collect(maps.Keys(given))...)
	if err := d.fits("", entries, bytes); err != nil {
		return err
	}
	for local, name := range given {
		if err := d.put(local, name, files[name], false); err != nil {
			return err
		}
	}
	return nil
}

// Delete removes a file, a link (not what it leads to) or an empty folder, and
// with recursive a folder with all that is in it.
func (d *Dir) Delete(name string, recursive bool) error {
	local, err := parse(name)
	switch {
	case err != nil:
		return err
	case d.options.ReadOnly:
		return refuse("the workspace is read-only: %s stays", quote(name))
	case local == ".":
		return refuse("the workspace itself cannot be deleted: name what is in it")
	}
	defer d.WithinQuota()
	d.mu.Lock()
	defer d.mu.Unlock()
	info, err := d.root.Lstat(local)
	if err == nil && info.IsDir() && recursive {
		err = d.root.RemoveAll(local)
	} else if err == nil {
		err = d.root.Remove(local)
	}
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.EEXIST) {
		return &refusal{"folder " + quote(name) + " is not empty: to delete it with all that is in it, say recursive", err}
	}
	return failed("delete", name, err)
}

// Empty removes all that is in the workspace. A guest may have taken its own right
// to list a folder away, which is given back first.
func (d *Dir) Empty() error {
	if d.options.ReadOnly {
		return refuse("the workspace is read-only: its files stay")
	}
	defer d.WithinQuota()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.start(&walk{most: math.MaxInt32, depth: math.MaxInt, rights: toRemove}); err != nil {
		return failed("empty", ".", err)
	}
	top, err := d.root.Open(".")
	if err != nil {
		return failed("empty", ".", err)
	}
	defer top.Close()
	names, err := top.Readdirnames(-1)
	for _, name := range names {
		err = errors.Join(err, failed("delete", name, d.root.RemoveAll(name)))
	}
	return failed("empty", ".", err)
}

// writable checks the name of a file to write.
func (d *Dir) writable(name string) (string, error) {
	local, err := fileName(name)
	if err == nil && d.options.ReadOnly {
		err = refuse("the workspace is read-only: %s is not written", quote(name))
	}
	return local, err
}

// fits says whether so many entries and bytes can be added. A file that is
// replaced counts until it is, or the guest's watchdog would see too much.
func (d *Dir) fits(name string, files, bytes int64) error {
	what := quote(name)
	if name == "" {
		what = "what is given"
	}
	o := d.options
	if o.Bytes > 0 && bytes > o.Bytes {
		return refuse("%s has %d bytes: the workspace holds %d at most", what, bytes, o.Bytes)
	}
	if o.Bytes == 0 && o.Files == 0 && o.Quota == nil {
		return nil
	}
	used, err := d.usage()
	switch {
	case err != nil:
		return failed("write", name, err)
	case used.More:
		return refuse("%s does not fit: the workspace holds more files than are counted, or deeper folders; delete what is not needed", what)
	case o.Files > 0 && used.Files+files > o.Files:
		return refuse("%s does not fit: the workspace holds %d files and folders, and %d at most; delete what is not needed", what, used.Files, o.Files)
	case o.Bytes > 0 && used.Bytes > o.Bytes-bytes:
		return refuse("%s does not fit: it has %d bytes, the workspace holds %d, and %d at most (a file that is replaced counts until then); delete what is not needed",
			what, bytes, used.Bytes, o.Bytes)
	}
	if o.Quota != nil {
		if all, fits := o.Quota.hold(d, used.Bytes+bytes, false); !fits {
			return refuse("%s does not fit: with it, the files of all your sessions have %d bytes, and may have %d; delete what is not needed", what, all, o.Quota.most)
		}
	}
	return nil
}

// missingFolders counts the folders that files need and that are not there.
func (d *Dir) missingFolders(files ...string) int64 {
	missing := map[string]bool{}
	for _, file := range files {
		for folder := path.Dir(file); folder != "."; folder = path.Dir(folder) {
			if _, err := d.root.Stat(folder); errors.Is(err, fs.ErrNotExist) {
				missing[folder] = true
			}
		}
	}
	return int64(len(missing))
}

// Files that are being written stand at the top of the workspace until they are
// whole, under names like this. One that was left by a kill is removed by the
// next Open once it is older than any write can take.
const (
	partialPrefix = ".rillbox-"
	partialSuffix = ".partial"
	partialAge    = time.Hour
)

// put writes a file beside its place and renames it into it. The guest may do
// to the file in the making what it may do to any other; it gains nothing that
// it could not do to the file in its place.
func (d *Dir) put(local, name string, data []byte, durable bool) (err error) {
	partial := partialPrefix + strings.ToLower(rand.Text()) + partialSuffix
	file, err := d.root.OpenFile(partial, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return failed("write", name, err)
	}
	defer func() {
		if err != nil {
			_ = d.root.Remove(partial) // else the next Open does
		}
	}()
	err = d.fill(file, local, data, durable)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if folder := path.Dir(local); err == nil && folder != "." {
		if err = d.root.MkdirAll(folder, 0o777); errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTDIR) {
			return refuse("cannot write %s: one of its folders is a file", quote(name))
		}
	}
	if err == nil {
		err = d.root.Rename(partial, local)
	}
	if err == nil {
		return nil
	}
	if info, wrong := d.root.Lstat(local); wrong == nil && info.IsDir() {
		return refuse("%s is a folder: name a file in it, or delete it first", quote(name))
	}
	return failed("write", name, err)
}

// fill writes data, with the permissions of the file that is replaced.
func (d *Dir) fill(file *os.File, local string, data []byte, durable bool) error {
	if old, err := d.root.Lstat(local); err == nil && old.Mode().IsRegular() {
		if err := file.Chmod(old.Mode().Perm()); err != nil {
			return err
		}
	}
	if _, err := file.Write(data); err != nil {
		return err
	}
	if !durable {
		return nil
	}
	// Before the name leads to it; some file systems tell only here that they
	// are full.
	return file.Sync()
}

// removePartial removes what writers that were killed left behind.
func (d *Dir) removePartial() {
	top, err := d.root.Open(".")
	if err != nil {
		return // the first call says so
	}
	defer top.Close()
	entries, _ := top.ReadDir(maxWalk)
	for _, entry := range entries {
		if name := entry.Name(); strings.HasPrefix(name, partialPrefix) && strings.HasSuffix(name, partialSuffix) {
			if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()).Abs() > partialAge { // a clock may have been set back
				_ = d.root.Remove(name)
			}
		}
	}
}
