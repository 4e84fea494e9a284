//go:build !windows

package terminal

import (
	"bytes"
	"errors"
	"fmt"
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

// ErrAborted says that a person dropped what they typed.
var ErrAborted = errors.New("aborted")

// Editor takes cells from a person at a terminal.
type Editor struct {
	shell *readline.Shell
	names func(text string) []string
	keys  *keys
}

// NewEditor makes an editor with a history of that name, which is kept in a file, if it
// can be. names completes the last word of a text; what is unfinished goes on in the
// next line, whose prompt is more.
func NewEditor(history, prompt, more string, names func(text string) []string, unfinished func(text string) bool) (*Editor, error) {
	keys, err := openKeys()
	if err != nil {
		return nil, fmt.Errorf("cannot read the terminal: %w", err)
	}
	e := &Editor{readline.NewShell(), names, keys}
	e.shell.Prompt.Primary(func() string { return prompt })
	e.shell.Prompt.Secondary(func() string { return more })
	e.shell.AcceptMultiline = func(line []rune) bool {
		return !unfinished(string(line))
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
	if file, err := historyFile(history); err == nil {
		e.shell.History.AddFromFile("history", file)
	}
	return e, nil
}

// Next gives a cell; ErrAborted when what was typed is dropped, io.EOF at the end.
func (e *Editor) Next() (string, error) {
	defer e.keys.pass()()
	cell, err := e.shell.Readline()
	if errors.Is(err, readline.ErrInterrupt) {
		return "", ErrAborted
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
func (e *Editor) complete(text string) readline.Completions {
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

// The history has at most MaxHistory entries when a REPL begins.
const MaxHistory = 1000

// historyFile gives the file of a history, which it makes, for the
// person's own eyes, or makes shorter.
func historyFile(name string) (string, error) {
	dir, err := stateDir()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "history-"+name+".jsonl")
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	entries := bytes.SplitAfter(content, []byte("\n"))
	if len(entries) <= 2*MaxHistory {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return "", err
		}
		return path, errors.Join(file.Chmod(0o600), file.Close())
	}
	shorter := path + ".new"
	if err := os.WriteFile(shorter, bytes.Join(entries[len(entries)-1-MaxHistory:], nil), 0o600); err != nil {
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
