// Package workspace is one directory that a guest and its client share: the
// guest as its current directory, the client through the calls of a Dir. Names
// and bytes of a client's go in, and what is in the directory comes out as
// bytes, lists and the changes that a run made.
//
// The guest is hostile and at work at the same time: it may rename, replace and
// link whatever is in the directory between any two system calls of ours. So
//
//   - every path is walked by os.Root, one component below the other from an
//     open directory, and no name or link leads out of it;
//   - what is opened is judged by its descriptor, never by its name, and
//     without waiting for it (a FIFO opens at once and is refused);
//   - a file is written beside its place and renamed into it, so that it is the
//     old one or the new one, and whole, after a kill and on a full disk;
//   - every walk is bounded in entries and depth.
//
// A hard link in a workspace can be read like any file: a guest can link only
// what it may read and write as well, by Deno's permissions and by Landlock, so
// a link shows nothing that the guest could not have copied. Writing never goes
// through one, for what is written is a new file.
package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Options say what a workspace may hold.
type Options struct {
	// Bytes and Files bound what all of it may hold at each instant, a file
	// that is being replaced included; Files counts folders, too. Zero is no
	// bound. They hold for what is written through the Dir; what a guest writes
	// is for its supervisor to watch.
	Bytes, Files int64
	// Quota, if any, bounds what all workspaces that have it hold together.
	Quota *Quota
	// ReadOnly refuses to write and to delete.
	ReadOnly bool
}

// Dir is an open workspace. Its methods can be called from several goroutines,
// also while programs run in the directory. Their errors are written for the
// client who named the file, and tell nothing of where the directory is; where
// a file is not there, they are fs.ErrNotExist, and after Close os.ErrClosed.
type Dir struct {
	root    *os.Root
	options Options
	// mu keeps writers apart, so that two of them do not share what is left of
	// the limits, and lists from seeing a file that is not in its place yet.
	mu sync.RWMutex
}

// Kind is what a name in a workspace stands for.
type Kind string

// The kinds; a link is not followed to say what it leads to.
const (
	Regular Kind = "file"
	Folder  Kind = "folder"
	Link    Kind = "link"
	Other   Kind = "other" // a FIFO, a socket, a device
)

// File is one entry of a workspace.
type File struct {
	// Name is its path from the workspace, with slashes.
	Name string
	Kind Kind
	// Size is in bytes; 0 but for regular files.
	Size     int64
	Modified time.Time
	// Type is the MIME type that the name's ending stands for, and, of a file
	// that was read, else what its bytes look like; empty when unknown.
	Type string
}

// Open opens the directory at path, which must exist. The caller must call
// Close; the directory stays.
func Open(path string, o Options) (*Dir, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open the workspace: %w", err)
	}
	d := &Dir{root: root, options: o}
	if o.Quota != nil {
		o.Quota.join(d)
	}
	if !o.ReadOnly {
		d.removePartial()
	}
	return d, nil
}

// Close closes the directory; calls that are under way end first.
func (d *Dir) Close() error {
	if d.options.Quota != nil {
		d.options.Quota.leave(d)
	}
	return d.root.Close()
}

// Options are those that the workspace was opened with.
func (d *Dir) Options() Options { return d.options }

// fileOf describes an entry by what lstat says of it.
func fileOf(name string, stat *unix.Stat_t) File {
	modified := time.Unix(stat.Mtim.Unix())
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return regular(name, stat.Size, modified)
	case unix.S_IFDIR:
		return File{Name: name, Kind: Folder, Modified: modified}
	case unix.S_IFLNK:
		return File{Name: name, Kind: Link, Modified: modified}
	}
	return File{Name: name, Kind: Other, Modified: modified}
}

func regular(name string, size int64, modified time.Time) File {
	return File{Name: name, Kind: Regular, Size: size, Modified: modified, Type: typeOf(name)}
}

// refusal is an error in words for the client, which keeps its cause for
// errors.Is. The cause's own words are left out, for they may hold the
// directory's path.
type refusal struct {
	words string
	cause error
}

func (r *refusal) Error() string { return r.words }
func (r *refusal) Unwrap() error { return r.cause }

func refuse(format string, args ...any) error {
	return &refusal{words: fmt.Sprintf(format, args...)}
}

// failed makes a refusal of what the system said about name.
func failed(doing, name string, err error) error {
	if err == nil {
		return nil
	}
	var words string
	switch {
	case errors.As(err, new(*refusal)):
		return err
	case errors.Is(err, os.ErrClosed):
		words = "the workspace is closed: its session has ended"
	case errors.Is(err, fs.ErrNotExist):
		words = fmt.Sprintf("%s is not in the workspace", quote(name))
	case leadsOut(err):
		words = fmt.Sprintf("path %s leads out of the workspace through a symbolic link, which is not followed", quote(name))
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		words = fmt.Sprintf("cannot %s %s: the disk under the workspace is full", doing, quote(name))
	default:
		words = fmt.Sprintf("cannot %s %s: %v", doing, quote(name), reason(err))
	}
	return &refusal{words, err}
}

// leadsOut says whether os.Root refused a path that leaves it. The error has no
// name outside of package os, only its words.
func leadsOut(err error) bool {
	return reason(err).Error() == "path escapes from parent"
}

// reason is err without the path that the system's errors carry.
func reason(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return reason(path.Err)
	case errors.As(err, &link):
		return reason(link.Err)
	default:
		return err
	}
}

// quote shows a client's word back, shortened.
func quote(word string) string {
	const most = 200
	if len(word) > most {
		word = word[:most] + "…"
	}
	return fmt.Sprintf("%q", strings.ToValidUTF8(word, "\uFFFD"))
}
