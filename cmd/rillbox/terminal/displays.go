//go:build !windows

package terminal

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image/png"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	graphics "github.com/charmbracelet/x/ansi/kitty"
	"github.com/mattn/go-sixel"
	"golang.org/x/sys/unix"

	"rillbox/server"
	"rillbox/supervisor/job"
)

// Displays appear when the program has ended: text on stdout, pictures as files and,
// at a terminal that can draw, drawn. Notes about them go to stderr.

// pictureForms are the forms that become files, the best of a display first.
var pictureForms = []struct{ mime, extension string }{
	{"image/png", ".png"},
	{"image/jpeg", ".jpg"},
	{"image/webp", ".webp"},
	{"image/gif", ".gif"},
	{"image/svg+xml", ".svg"},
	{"application/pdf", ".pdf"},
}

// textForms are those that can be read at a terminal, the best first.
var textForms = []string{"text/plain", "text/markdown", "application/json", "text/latex", "text/html"}

// Gallery is where the pictures of a program or a session are saved.
type Gallery struct {
	// Dir/Name-1.png is the first one's file.
	Dir, Name string
	// Session says that existing files stay, and the next free number is taken, and
	// that a picture that could be drawn is not saved; else they are replaced, as one
	// wants when a program is run again.
	Session bool

	count   int
	asked   bool // drawing was found out
	drawing drawing
}

// Display shows what a program displayed.
func (o *Output) Display(g *Gallery, displays []job.Display) {
	for _, display := range displays {
		o.EndLine(os.Stdout)
		if err := o.showOne(g, display); err != nil && o.Failed == nil {
			PrintError(err)
		}
	}
}

func (o *Output) showOne(g *Gallery, display job.Display) error {
	for _, form := range pictureForms {
		content, ok := display[form.mime]
		if !ok {
			continue
		}
		data := []byte(content)
		if form.mime != "image/svg+xml" {
			var err error
			if data, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(content), "")); err != nil {
				return fmt.Errorf("a picture can't be shown: its %s is not base64", form.mime)
			}
		}
		return o.showPicture(g, data, form.extension)
	}
	for _, mime := range textForms {
		if text, ok := display[mime]; ok {
			if text == "" {
				return nil // it was printed as well
			}
			defer o.End()
			return o.write(os.Stdout, []byte(strings.TrimSuffix(text, "\n")+"\n"))
		}
	}
	return fmt.Errorf("what the program showed can't be shown here: %q", slices.Sorted(maps.Keys(display)))
}

// showPicture draws a picture where it can be, and keeps it as a file.
func (o *Output) showPicture(g *Gallery, data []byte, extension string) error {
	if !g.asked {
		g.drawing, g.asked = drawingOf(os.Stdout, os.Getenv), true
	}
	drawn := false
	if g.drawing != noDrawing && extension != ".svg" && extension != ".pdf" {
		err := g.drawing.draw(os.Stdout, data)
		if err != nil {
			o.note(fmt.Sprintf("a picture can't be drawn here: %v", err))
		}
		drawn = err == nil
	}
	if drawn && g.Session {
		return nil
	}
	path, replaced, err := g.save(data, extension)
	if err != nil {
		return fmt.Errorf("cannot keep a picture: %w", err)
	}
	if !o.quiet {
		said := path
		if replaced {
			said += " (replaced)"
		}
		fmt.Fprintln(os.Stderr, Paint(os.Stderr, Green, "picture:"), job.ShowText(said))
	}
	return nil
}

// save writes the next picture's file. A link in its place is replaced, not followed.
func (g *Gallery) save(data []byte, extension string) (path string, replaced bool, err error) {
	var file *os.File
	for file == nil {
		g.count++
		path = filepath.Join(g.Dir, fmt.Sprintf("%s-%d%s", g.Name, g.count, extension))
		if !g.Session {
			err := unix.Unlink(path)
			replaced = err == nil
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return path, false, &fs.PathError{Op: "replace", Path: path, Err: err}
			}
		}
		file, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if err != nil && !(g.Session && errors.Is(err, fs.ErrExist)) {
			return path, replaced, err
		}
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(path) // half a picture is useless; the error says what happened
	}
	return path, replaced, err
}

// drawing is the protocol by which a terminal draws pictures. A guest's picture is
// decoded here and its pixels encoded again, so that none of its bytes reach a terminal.
type drawing int

const (
	noDrawing drawing = iota
	kitty             // https://sw.kovidgoyal.net/kitty/graphics-protocol/
	iterm             // https://iterm2.com/documentation-images.html
	sixels            // DEC's, of the VT340
)

// drawingOf says how f can be drawn on: what the environment tells of the
// terminal, else what the terminal itself answers about sixels.
func drawingOf(f *os.File, getenv func(string) string) drawing {
	if !Is(f) {
		return noDrawing
	}
	name, program := getenv("TERM"), getenv("TERM_PROGRAM")
	switch {
	case name == "" || name == "dumb":
		return noDrawing
	case strings.HasPrefix(name, "tmux") || strings.HasPrefix(name, "screen"):
		// Its environment is that of the terminal around it. It can only draw sixels.
	case name == "xterm-kitty" || name == "xterm-ghostty" || program == "ghostty" || program == "" && getenv("KITTY_WINDOW_ID") != "":
		return kitty
	case program == "iTerm.app" || program == "WezTerm" || getenv("LC_TERMINAL") == "iTerm2":
		return iterm
	}
	if !inForeground(f) {
		return noDrawing
	}
	for range asks {
		if sixel.IsSupported() {
			return sixels
		}
	}
	return noDrawing
}

// asks is how often a terminal is asked for sixels: each time waits a tenth of a
// second, and a busy or remote terminal may answer later.
const asks = 3

// inForeground says whether f is the terminal that we may ask: a process in the
// background that changes a terminal's mode is stopped.
func inForeground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// draw puts a guest's picture on f, scaled down to its width.
func (d drawing) draw(f *os.File, data []byte) error {
	picture, err := server.DecodePicture(data, widthOf(f))
	if err != nil {
		return err
	}
	out := bufio.NewWriter(f)
	switch d {
	case sixels:
		encoder := sixel.NewEncoder(out)
		encoder.Dither = true
		err = encoder.Encode(picture)
	case kitty:
		err = graphics.EncodeGraphics(out, picture, &graphics.Options{
			Action: graphics.TransmitAndPut, Transmission: graphics.Direct, Format: graphics.PNG, Chunk: true,
			Quiet: 2, // the terminal answers nothing
		})
	case iterm:
		var file bytes.Buffer
		err = png.Encode(&file, picture)
		fmt.Fprintf(out, "\x1b]1337;File=inline=1;size=%d;width=%dpx:%s\a", file.Len(), picture.Bounds().Dx(), base64.StdEncoding.EncodeToString(file.Bytes()))
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(out)
	return out.Flush()
}

// maxWidth is how wide a picture is at most drawn, in pixels, on a terminal as
// wide as a wall.
const maxWidth = 2000

// widthOf is how wide a picture may be on f, in pixels. Where it does not tell,
// eight of them to a column is what most fonts have at least.
func widthOf(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	switch {
	case err != nil || size.Col == 0:
		return 640
	case size.Xpixel > 0:
		return min(int(size.Xpixel), maxWidth)
	default:
		return min(int(size.Col)*8, maxWidth)
	}
}
