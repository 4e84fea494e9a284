//go:build !windows

package terminal

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"rillbox/supervisor"
)

// What a program shows appears when it has ended: text on stdout, pictures as
// files and, at a terminal that can, drawn. What is said of them goes to stderr.

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

// Gallery is where the pictures of a program, or of a session, go.
type Gallery struct {
	// Dir/Name-1.png is the first one's file.
	Dir, Name string
	// Fresh says that a file that is there is left alone, and the next number
	// taken; else it is replaced, as one wants when a program is run again.
	Fresh bool
	// Drawn says that what is drawn need not be a file as well.
	Drawn bool

	count   int
	asked   bool // drawing is known
	drawing drawing
}

// Display shows what a program displayed.
func (o *Output) Display(g *Gallery, displays []supervisor.Display) {
	for _, display := range displays {
		o.EndLine(os.Stdout)
		if err := o.showOne(g, display); err != nil && o.Failed == nil {
			PrintError(err)
		}
	}
}

func (o *Output) showOne(g *Gallery, display supervisor.Display) error {
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
	if drawn && g.Drawn {
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
		fmt.Fprintln(os.Stderr, Paint(os.Stderr, Green, "picture:"), supervisor.ShowText(said))
	}
	return nil
}

// save writes the next picture's file. What stands in its place, be it a link,
// is replaced itself, never written through.
func (g *Gallery) save(data []byte, extension string) (path string, replaced bool, err error) {
	var file *os.File
	for file == nil {
		g.count++
		path = filepath.Join(g.Dir, fmt.Sprintf("%s-%d%s", g.Name, g.count, extension))
		if !g.Fresh {
			err := unix.Unlink(path)
			replaced = err == nil
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return path, false, &fs.PathError{Op: "replace", Path: path, Err: err}
			}
		}
		file, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if err != nil && !(g.Fresh && errors.Is(err, fs.ErrExist)) {
			return path, replaced, err
		}
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(path) // half a picture is none; the error says what happened
	}
	return path, replaced, err
}
