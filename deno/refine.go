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

// neverResolvedRoom is more than Deno's message takes, in bytes.
const neverResolvedRoom = 8 << 10

// refine adds to a result what the bootstrap module could not know.
func refine(r *supervisor.Result, p supervisor.Program, m module, scan scanFunc) {
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
	if p.Language == supervisor.JavaScript && !m.tooHard && isTypeScript(p.Code, scan) {
		r.Error.Message += "\nThe program is TypeScript: run it with language typescript"
		r.Error.Traceback += "\nThe program is TypeScript: run it with language typescript"
	}
}

func isTypeScript(code string, scan scanFunc) bool {
	for _, extension := range []string{".ts", ".tsx"} {
		found, err := scan(code, extension)
		if err != nil || found.TooHard {
			return false
		}
		if found.Problem == "" {
			return true
		}
	}
	return false
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
	from := max(0, len(*text)-neverResolvedRoom) // the rest is the guest's, and may be made to take long
	match := neverResolved.FindSubmatchIndex((*text)[from:])
	if match == nil {
		return "", false
	}
	place = string((*text)[from+match[2] : from+match[3]])
	*text = (*text)[:from+match[0]]
	return place, true
}
