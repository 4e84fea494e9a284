package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"rillbox/supervisor/job"
)

// resolve finds the language that a client named, and the name of the program's file
// where that says how it is parsed. A name that may be absent stands for no language.
func (s *Server) resolve(name string, optional bool) (_ job.Language, file string, err error) {
	if name == "" && optional {
		return "", "", nil
	}
	if l, file, found := job.FindLanguage(s.o.Supervisor.Languages(), name); found {
		return l.Name, file, nil
	}
	if name == "" {
		return "", "", fmt.Errorf("the call needs language: use one of %s", strings.Join(job.LanguageNames(s.o.Supervisor.Languages()), ", "))
	}
	return "", "", job.NoLanguage(s.o.Supervisor.Languages(), name)
}

// describeLanguages completes a schema with what the languages say.
func (s *Server) describeLanguages(schema *jsonschema.Schema) {
	var names, syntaxes []any
	for _, l := range s.o.Supervisor.Languages() {
		names = append(names, string(l.Name))
		for _, syntax := range l.Syntaxes {
			syntaxes = append(syntaxes, syntax)
		}
	}
	schema.Properties["language"].Enum = append(names, syntaxes...)
}

// each lists what the languages say, once where several say the same, and nothing of those
// that say nothing.
func (s *Server) each(say func(job.LanguageInfo) string) (all []string) {
	for _, l := range s.o.Supervisor.Languages() {
		if said := say(l); said != "" && !slices.Contains(all, said) {
			all = append(all, said)
		}
	}
	return all
}

// packageExamples are examples of packages for the languages that take them.
func (s *Server) packageExamples() (text string) {
	for _, examples := range s.each(func(l job.LanguageInfo) string { return l.Packages }) {
		var titles []string
		for _, l := range s.o.Supervisor.Languages() {
			if l.Packages == examples {
				titles = append(titles, l.Title)
			}
		}
		text += fmt.Sprintf(" %s: %s.", job.Listed(titles, "and"), examples)
	}
	return text
}
