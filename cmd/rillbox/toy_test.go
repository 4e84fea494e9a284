//go:build !windows

package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"rillbox/pyodide"
	"rillbox/supervisor/job"
)

// A language is one row: this file adds one to the programs of TestAToyLanguage, and
// all that Rillbox says and does of languages follows.

const toyVariable = "RILLBOX_TEST_TOY"

func init() {
	if os.Getenv(toyVariable) == "" {
		return
	}
	engineKinds = append(engineKinds, engineKind{
		name: "shout", runtimes: "nothing",
		languages: []job.LanguageInfo{{
			Name: "shout", Title: "Shout", Aliases: []string{"sh!"}, Extensions: []string{".shout", ".loud"},
			How: "Shout programs are printed in capitals.", Packages: "none", Arguments: "nowhere",
			Banner: "Shout ${shout}", Prompt: "! ", More: "  ", Exits: []string{"enough"},
			Probe: `{"whisper": "it can only shout"}`, Endless: "wait",
		}},
		open: func(pyodide.Options) (job.Toolchain, error) { return shout{}, nil },
	})
}

func TestAToyLanguage(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/toy",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, append(scriptEnvironment(t, env.WorkDir), toyVariable+"=1")...)
			return nil
		},
	})
}

// shout is an engine without a process.
type shout struct{}

func (shout) Run(ctx context.Context, p job.Program, streams job.Streams) (job.Result, error) {
	r := job.Result{Status: job.Completed}
	switch {
	case p.Code == "wait":
		limited, cancel := context.WithTimeout(ctx, p.Timeout)
		defer cancel()
		<-limited.Done()
		r.Status = job.TimedOut
	case strings.HasPrefix(p.Code, "{"):
		r.Value = []byte(p.Code)
	default:
		r.Stdout.Head = []byte(strings.ToUpper(p.Code) + "\n")
		streams.Emit(job.Event{Kind: job.Stdout, Data: r.Stdout.Head})
	}
	return r, nil
}

func (shout) Prepare(context.Context, func(job.Event), ...job.Language) error { return nil }

func (shout) Install(context.Context, job.Program, func(job.Event)) ([]job.Package, error) {
	return nil, nil
}

func (shout) Describe() job.Description {
	return job.Description{Languages: engineKinds[len(engineKinds)-1].languages, Versions: map[string]string{"shout": "1.0"}, Ready: true, Wall: "none"}
}

func (shout) Close() {}

func (s shout) OpenSession(context.Context, job.SessionOptions, func(job.Event)) (job.Session, error) {
	return shouting{s, make(chan struct{})}, nil
}

type shouting struct {
	shout
	ended chan struct{}
}

func (shouting) Complete(context.Context, string) ([]string, error) { return nil, nil }
func (shouting) Unfinished(context.Context, string) (bool, error)   { return false, nil }
func (shouting) Memory() int64                                      { return 0 }
func (s shouting) Ended() <-chan struct{}                           { return s.ended }
func (s shouting) Close()                                           { close(s.ended) }
