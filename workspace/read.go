package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Content is part of a file.
type Content struct {
	// File is what the file was when it was opened.
	File
	// Data are the bytes from Offset on: as many as were asked for, or fewer at
	// the file's end.
	Offset int64
	Data   []byte
	// Text says that Data is UTF-8 without NUL characters, save for characters
	// that its two ends cut through.
	Text bool
}

// Rest is how many bytes of the file follow Data.
func (c Content) Rest() int64 { return max(0, c.Size-c.Offset-int64(len(c.Data))) }

// Read returns at most limit bytes of a file, from offset on; none when offset
// is at its end or beyond. The file may change at any time: Data is what was
// there when it was read.
func (d *Dir) Read(name string, offset, limit int64) (Content, error) {
	if offset < 0 || limit < 0 {
		return Content{}, refuse("cannot read %d bytes from %d on: neither can be negative", limit, offset)
	}
	local, err := fileName(name)
	if err != nil {
		return Content{}, err
	}
	file, info, err := d.open(local, name)
	if err != nil {
		return Content{}, err
	}
	defer file.Close()
	c := Content{File: regular(local, info.Size(), info.ModTime()), Offset: offset}
	// The buffer is no larger than what the file has now, so that a large limit
	// costs nothing.
	c.Data = make([]byte, min(limit, max(0, info.Size()-offset)))
	n, err := file.ReadAt(c.Data, offset)
	if err != nil && !errors.Is(err, io.EOF) { // EOF: it became shorter
		return Content{}, failed("read", name, err)
	}
	c.Data = c.Data[:n]
	c.Text = isText(c.Data, offset > 0, c.Rest() > 0)
	if c.Type == "" {
		if c.Type = "application/octet-stream"; c.Text {
			c.Type = "text/plain"
		}
	}
	return c, nil
}

// open opens a regular file. Opening never waits, not for the other end of a
// FIFO either, and what it is, is asked of the descriptor.
func (d *Dir) open(local, name string) (*os.File, fs.FileInfo, error) {
	file, err := d.root.OpenFile(local, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if errors.Is(err, syscall.ENXIO) { // how a socket answers
			err = refuse("%s is a socket, not a file", quote(name))
		}
		return nil, nil, failed("read", name, err)
	}
	info, err := file.Stat()
	switch {
	case err != nil:
		err = failed("read", name, err)
	case info.IsDir():
		err = refuse("%s is a folder: list what is in it", quote(name))
	case !info.Mode().IsRegular():
		err = refuse("%s is not a regular file (%v), and is not read", quote(name), info.Mode().Type())
	default:
		return file, info, nil
	}
	file.Close()
	return nil, nil, err
}
