//go:build !windows

package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// A source gives the cells of a REPL, one after the other: typed at a terminal,
// or piped in.
type source interface {
	// Next gives a cell; terminal.ErrAborted when what was typed is dropped, io.EOF at
	// the end.
	Next() (string, error)
}

// piped takes cells from what is not typed. A cell goes on as long as its session
// finds it unfinished, or the next line continues it.
type piped struct {
	lines      *bufio.Reader
	limit      int // of a cell, in bytes; more is left to whoever refuses it
	unfinished func(cell string) bool
	continues  *regexp.Regexp
	// typed says that somebody waits for each cell, although it is no terminal
	// for an editor: a cell ends as there, and not by what follows it.
	typed bool
	ahead string
	ended bool
}

func (p *piped) Next() (string, error) {
	cell := p.ahead
	for {
		line, err := "", io.EOF
		if !p.ended {
			line, err = p.lines.ReadString('\n')
		}
		if err != nil && err != io.EOF {
			return "", fmt.Errorf("cannot read standard input: %w", err)
		}
		p.ended = err == io.EOF
		blank := strings.TrimSpace(cell) == ""
		continues := p.continues != nil && p.continues.MatchString(line)
		switch {
		case line == "" && blank:
			return "", io.EOF
		case line == "" || !blank && (len(cell) > p.limit || !continues && !p.unfinished(cell)):
			p.ahead = line
			return cell, nil
		case blank:
			cell = line
		default:
			cell += line
		}
		if p.typed && !p.unfinished(strings.TrimSuffix(cell, "\n")) {
			p.ahead = ""
			return cell, nil
		}
	}
}
