//go:build !windows

// Package terminal is what a person sees and types: the progress of a run, what a
// program writes and displays, and the editor of the REPL. What a guest wrote comes in
// as events and results, and leaves for a terminal without anything that would command
// it (screen.go); what is typed comes in as keys, and leaves as a cell or as a
// program's standard input.
//
// By hand are what no library does: the filter of a guest's escape sequences, and the
// choice of the protocol for pictures from the environment.
package terminal

import (
	"fmt"
	"os"

	"golang.org/x/term"

	"rillbox/supervisor/job"
)

// Colours, as terminals number them.
const (
	Red    = "31"
	Green  = "32"
	Yellow = "33"
)

// Colours says whether f shows colours: a terminal, and nobody asked for none.
func Colours(f *os.File) bool {
	return Is(f) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Is says whether f is a terminal.
func Is(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Paint colours text where f shows colours.
func Paint(f *os.File, colour, text string) string {
	if !Colours(f) {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// PrintError tells an error of ours on stderr.
func PrintError(err error) {
	fmt.Fprintln(os.Stderr, Paint(os.Stderr, Red, "rillbox:"), job.ShowText(err.Error()))
}
