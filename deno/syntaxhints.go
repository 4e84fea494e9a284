package deno

import (
	"bytes"
	"path"
	"strings"

	"rillbox/deno/modules"
	"rillbox/supervisor/job"
)

// neverResolved is what Deno prints when the event loop is empty and a
// top-level await is not done. It ends at the place.
var (
	neverResolved = []byte("error: Top-level await promise never resolved\n")
	itsPlace      = modules.Pattern(`    at \S+ \(?file:\S+?:(\d+:\d+)\)?\n?$`)
)

// neverResolvedRoom is more than Deno's message takes, in bytes.
const neverResolvedRoom = 8 << 10

// addSyntaxHints adds to a failed result what the bootstrap module could not know:
// where a program can't be parsed, that it is TypeScript, what it waited for.
func addSyntaxHints(r *job.Result, p job.Program, m modules.Module, scan modules.ScanFunc) {
	if r.Status != job.Failed {
		return
	}
	if place, ok := cutNeverResolved(r.Errors()); ok && r.Error == nil {
		message := "Top-level await promise never resolved"
		r.Error = &job.GuestError{Name: "Error", Message: message, Traceback: "Error: " + message + "\n    at " + m.Name + ":" + place}
	}
	if r.Error == nil || r.Error.Name != "SyntaxError" {
		return
	}
	if m.Unparsed {
		if found, err := scan(modules.ScanRequest{Code: m.Code, Extensions: []string{path.Ext(m.File)}}); err == nil && found.Problem != "" {
			m.Problem = m.Name + found.Problem
		}
	}
	if m.Problem != "" && !strings.Contains(r.Error.Message, m.Name+":") {
		r.Error.Message += " at " + m.Problem
		r.Error.Traceback = "SyntaxError: " + r.Error.Message
	}
	if p.Language == job.JavaScript && !m.TooHard {
		explainTypeScript(r.Error, p.Code, scan)
	}
}

// explainTypeScript adds to a syntax error that the program is TypeScript, if it is that
// and no JavaScript: what is both has another error, such as a name that a module does
// not export.
func explainTypeScript(e *job.GuestError, code string, scan modules.ScanFunc) {
	typescript, err := scan(modules.ScanRequest{Code: code, Extensions: []string{".ts", ".tsx"}})
	if err != nil || typescript.TooHard || typescript.Problem != "" {
		return
	}
	javascript, err := scan(modules.ScanRequest{Code: code, Extensions: []string{".mjs"}})
	if err == nil && javascript.Problem != "" {
		const hint = "\nThe program is TypeScript: run it with language typescript"
		e.Message, e.Traceback = e.Message+hint, e.Traceback+hint
	}
}

// cutNeverResolved takes Deno's message from the end of stderr, and gives the
// place in it.
func cutNeverResolved(stderr *job.Captured) (place string, ok bool) {
	if stderr.Omitted == 0 { // all in one piece
		stderr.Head, stderr.Tail = append(bytes.Clone(stderr.Head), stderr.Tail...), nil
	}
	text := &stderr.Tail
	if len(stderr.Tail) == 0 {
		text = &stderr.Head
	}
	// The rest is the guest's, and may be made to take long.
	from := max(0, len(*text)-neverResolvedRoom)
	at := bytes.LastIndex((*text)[from:], neverResolved)
	if at < 0 {
		return "", false
	}
	at += from
	match := itsPlace().FindSubmatch((*text)[at:])
	if match == nil {
		return "", false
	}
	*text = (*text)[:at]
	return string(match[1]), true
}
