//go:build !windows

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/reeflective/readline"

	"rillbox/supervisor"
)

// A source gives the cells of a REPL, one after the other: typed at a terminal,
// or piped in.
type source interface {
	// next gives a cell; errAborted when what was typed is dropped, io.EOF at
	// the end.
	next() (string, error)
}

var errAborted = errors.New("aborted")

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

func (p *piped) next() (string, error) {
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
		switch {
		case line == "" && blank:
			return "", io.EOF
		case line == "" || !blank && (len(cell) > p.limit || !p.unfinished(cell) && !p.continues.MatchString(line)):
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

// editor takes cells from a person at a terminal.
type editor struct {
	shell *readline.Shell
	names func(text string) []string
	keys  *keys
}

// newEditor makes an editor whose history is kept in a file, if it can be. names
// completes the last word of a text; what is unfinished goes on in the next line.
func newEditor(language language, names func(text string) []string, unfinished func(text string) bool) (*editor, error) {
	keys, err := openKeys()
	if err != nil {
		return nil, fmt.Errorf("cannot read the terminal: %w", err)
	}
	e := &editor{readline.NewShell(), names, keys}
	e.shell.Prompt.Primary(func() string { return language.prompt })
	e.shell.Prompt.Secondary(func() string { return language.more })
	e.shell.AcceptMultiline = func(line []rune) bool {
		return isCommand(string(line)) || !unfinished(string(line))
	}
	e.shell.Completer = func(line []rune, cursor int) readline.Completions {
		return e.complete(string(line[:cursor]))
	}
	for option, value := range map[string]any{
		// Letters beyond ASCII are letters, whatever the locale.
		"convert-meta": false, "input-meta": true, "output-meta": true,
		// The prompt begins a line, and some terminals never tell where they are.
		"cursor-position-probe": false,
		// Tab completes as far as it is clear, and lists what is possible.
		"menu-complete-display-prefix": true,
	} {
		_ = e.shell.Config.Set(option, value) // known options only
	}
	if file, err := historyFile(language.name); err == nil {
		e.shell.History.AddFromFile("history", file)
	}
	return e, nil
}

func (e *editor) next() (string, error) {
	defer e.keys.pass()()
	cell, err := e.shell.Readline()
	if errors.Is(err, readline.ErrInterrupt) {
		return "", errAborted
	}
	return cell, err
}

// lastWord is what is completed; the editor miscounts what is not ASCII.
var lastWord = regexp.MustCompile(`[A-Za-z_$][\w$.]*$`)

// maxNames is how many names a person is shown to choose from, maxName how long
// each may be.
const maxNames, maxName = 200, 100

// isName says whether a name looks like one.
func isName(name string) bool {
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_$#.", r) {
			return false
		}
	}
	return len(name) <= maxName && supervisor.ShowName(name) == name // there are letters that are not seen
}

// complete gives what may follow text, which at the beginning of a line is its
// indentation. Names are a guest's, and only those that look like names are shown.
func (e *editor) complete(text string) readline.Completions {
	if strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:]) == "" {
		return readline.CompleteValues("    ")
	}
	word := lastWord.FindString(text)
	if word == "" || endsBeyondASCII(strings.TrimSuffix(text, word)) {
		return readline.Completions{}
	}
	part := word[strings.LastIndexByte(word, '.')+1:]
	var found []readline.Completion
	for _, name := range e.names(text) {
		name = strings.TrimRight(name, "(): ") // of what can be called, in Python
		if !strings.HasPrefix(name, word) {    // only its last part, then
			name = strings.TrimSuffix(word, part) + name
		}
		if strings.HasPrefix(name, word) && isName(name) && len(found) < maxNames {
			found = append(found, readline.Completion{Value: name, Display: name[len(word)-len(part):]})
		}
	}
	completions := readline.CompleteRaw(found)
	completions.PREFIX = word
	return completions
}

// endsBeyondASCII says that a word goes on to the left of what was taken for one.
func endsBeyondASCII(text string) bool { return text != "" && text[len(text)-1] >= utf8.RuneSelf }

// The history has at most maxHistory entries when a REPL begins.
const maxHistory = 1000

// historyFile gives the file of a language's history, which it makes, for the
// person's own eyes, or makes shorter.
func historyFile(language supervisor.Language) (string, error) {
	dir, err := stateDir()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "history-"+string(language)+".jsonl")
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	entries := bytes.SplitAfter(content, []byte("\n"))
	if len(entries) <= 2*maxHistory {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return "", err
		}
		return path, errors.Join(file.Chmod(0o600), file.Close())
	}
	shorter := path + ".new"
	if err := os.WriteFile(shorter, bytes.Join(entries[len(entries)-1-maxHistory:], nil), 0o600); err != nil {
		return "", err
	}
	return path, os.Rename(shorter, path)
}

// stateDir is where what a person would not miss much is kept between runs: as
// the XDG base directories have it.
func stateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "rillbox"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state", "rillbox"), nil
}
