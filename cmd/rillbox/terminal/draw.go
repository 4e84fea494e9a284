//go:build !windows

package terminal

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"image/png"
	"os"
	"strings"

	graphics "github.com/charmbracelet/x/ansi/kitty"
	"github.com/mattn/go-sixel"
	"golang.org/x/sys/unix"

	"rillbox/server"
)

// drawing is how a terminal is given a picture. Pictures are a guest's bytes:
// they are decoded here, and a terminal gets the pixels alone, encoded anew.
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
		// What is around it was inherited, and it draws nothing but sixels.
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

// asks is how often a terminal is asked for sixels: the answer of one that is far
// away, or busy, may come after the tenth of a second that each time waits.
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
