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
	"unicode/utf8"

	"github.com/reeflective/readline"

	"rillbox/supervisor/job"
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

// maxNames is how many names a person is shown to choose from.
const maxNames = 200

// A name that does not look like one is not shown: it is a guest's.
var namePattern = regexp.MustCompile(`^[\p{L}\p{Nd}_$#.]{1,100}$`)

// complete gives what may follow text, which at the beginning of a line is its
// indentation.
func (e *Editor) complete(text string) readline.Completions {
	if strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:]) == "" {
		return readline.CompleteValues("    ")
	}
	word := lastWord.FindString(text)
	before := strings.TrimSuffix(text, word)
	if word == "" || before != "" && before[len(before)-1] >= utf8.RuneSelf { // the word begins before
		return readline.Completions{}
	}
	part := word[strings.LastIndexByte(word, '.')+1:]
	var found []readline.Completion
	for _, name := range e.names(text) {
		if !strings.HasPrefix(name, word) { // only its last part, then
			name = strings.TrimSuffix(word, part) + name
		}
		seen := job.ShowName(name) == name // there are letters that are not
		if strings.HasPrefix(name, word) && namePattern.MatchString(name) && seen && len(found) < maxNames {
			found = append(found, readline.Completion{Value: name, Display: name[len(word)-len(part):]})
		}
	}
	completions := readline.CompleteRaw(found)
	completions.PREFIX = word
	return completions
}

// MaxHistory is how many entries a history has at most when a REPL begins.
const MaxHistory = 1000

// historyFile makes the file of a history, for the person's own eyes, or makes it
// shorter. It is where the XDG base directories have what a person would not miss much.
func historyFile(name string) (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".local", "state")
	}
	dir = filepath.Join(dir, "rillbox")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "history-"+name+".jsonl")
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	entries := bytes.SplitAfter(content, []byte("\n")) // the last one is what follows the last line
	entries = entries[max(0, len(entries)-1-MaxHistory):]
	if err := os.WriteFile(path+".new", bytes.Join(entries, nil), 0o600); err != nil {
		return "", err
	}
	return path, os.Rename(path+".new", path)
}
