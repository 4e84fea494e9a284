//go:build !windows

package deno

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/evanw/esbuild/pkg/api"

	"rillbox/deno/modules"
	"rillbox/supervisor/job"
)

// Complete gives the names that may stand in place of the last word of text.
func (s *session) Complete(ctx context.Context, text string) ([]string, error) {
	s.child.Resume()
	defer s.child.Pause()
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	of, prefix := lastName(text)
	var names []string
	if of == "" {
		var lexical struct {
			Names []string `json:"names"`
		}
		if err := s.inspector.call(ctx, "Runtime.globalLexicalScopeNames", nil, &lexical); err != nil {
			return nil, err
		}
		names, of = lexical.Names, "globalThis"
	}
	var found evaluated
	err := s.inspector.call(ctx, "Runtime.evaluate", map[string]any{
		"expression": of, "throwOnSideEffect": true, "objectGroup": cellGroup, "timeout": completeTime.Milliseconds() / 2,
	}, &found)
	if err == nil && found.Exception == nil {
		var more []string
		if err = s.askGuest(ctx, "names", found.Result.argument(), &more); err == nil {
			names = append(names, more...)
		}
	}
	if ctx.Err() != nil {
		if stopped, _ := s.interrupt(); !stopped {
			s.child.Kill(job.TimedOut, "completing could not be interrupted")
		}
	}
	s.inspector.send("Runtime.releaseObjectGroup", map[string]any{"objectGroup": cellGroup})
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) })
	slices.Sort(names)
	return slices.Compact(names), err
}

// Unfinished says whether text, as it is typed, waits for another line: whether its
// parser expects more where it ends.
func (s *session) Unfinished(_ context.Context, text string) (bool, error) {
	return unfinished(s.language, text), nil
}

func unfinished(language job.Language, text string) bool {
	loader := api.LoaderJSX
	if language == job.TypeScript {
		loader = api.LoaderTS
	}
	text += "\n"
	end := strings.Count(text, "\n") + 1 // the last line's number
	result := api.Transform(text, api.TransformOptions{Loader: loader, LogLevel: api.LogLevelSilent})
	return slices.ContainsFunc(result.Errors, func(e api.Message) bool {
		return strings.Contains(e.Text, "end of file") || strings.HasPrefix(e.Text, `Expected "*/"`) ||
			strings.HasPrefix(e.Text, "Unterminated") && e.Location != nil && e.Location.Line == end // a template: other strings end with their line
	})
}

// completeTime is how long completing may take: it runs code of the guest's.
const completeTime = 2 * time.Second

// lastName splits the last word of text into the expression before its last dot,
// empty when there is none, and the beginning of a name.
func lastName(text string) (of, prefix string) {
	word := lastWord().FindString(text)
	if i := strings.LastIndexByte(word, '.'); i >= 0 {
		return word[:i], word[i+1:]
	}
	return "", word
}

var lastWord = modules.Pattern(`(?:[\p{L}$_][\p{L}\p{Nd}$_]*\??\.)*(?:[\p{L}$_][\p{L}\p{Nd}$_]*)?$`)
