package deno

import (
	"bytes"
	"regexp"
	"strings"

	"rillbox/supervisor"
)

// neverResolved is what Deno prints when the event loop is empty and a
// top-level await is not done. It ends at the place.
var neverResolved = regexp.MustCompile(`error: Top-level await promise never resolved\n(?s:.{0,999}?)    at \S+ \(?file:\S+?:(\d+:\d+)\)?\n?$`)

// refine adds to a result what the bootstrap module could not know.
func refine(r *supervisor.Result, p supervisor.Program, m module) {
	if r.Status != supervisor.Failed {
		return
	}
	if place, ok := cutNeverResolved(&r.Stderr); ok && r.Error != nil && r.Error.Name == "ProtocolError" {
		message := "Top-level await promise never resolved"
		r.Error = &supervisor.GuestError{Name: "Error", Message: message, Traceback: "Error: " + message + "\n    at " + m.name + ":" + place}
	}
	if r.Error == nil || r.Error.Name != "SyntaxError" {
		return
	}
	if m.problem != "" && !strings.Contains(r.Error.Message, m.name+":") {
		r.Error.Message += " at " + m.problem
		r.Error.Traceback = "SyntaxError: " + r.Error.Message
	}
	if p.Language == supervisor.JavaScript && isTypeScript(p.Code) {
		r.Error.Message += "\nThe program is TypeScript: run it with language typescript"
		r.Error.Traceback += "\nThe program is TypeScript: run it with language typescript"
	}
}

func isTypeScript(code string) bool {
	return scan(code, loaders[".ts"]).problem == "" || scan(code, loaders[".tsx"]).problem == ""
}

// cutNeverResolved takes Deno's message from the end of stderr, and gives the
// place in it.
func cutNeverResolved(stderr *supervisor.Captured) (place string, ok bool) {
	if stderr.Omitted == 0 { // all in one piece
		stderr.Head, stderr.Tail = append(bytes.Clone(stderr.Head), stderr.Tail...), nil
	}
	text := &stderr.Tail
	if len(stderr.Tail) == 0 {
		text = &stderr.Head
	}
	match := neverResolved.FindSubmatchIndex(*text)
	if match == nil {
		return "", false
	}
	place = string((*text)[match[2]:match[3]])
	*text = (*text)[:match[0]]
	return place, true
}
