//go:build !windows

package wasm

import (
	"slices"
	"testing"
	"time"

	"rillbox/supervisor/job"
	"rillbox/supervisor/wire"
)

// idle are the children of a language that wait.
func idle(e *Engine, language job.Language) []*wire.Worker {
	pool := e.poolOf(rowOf(language))
	if pool == nil {
		return nil
	}
	return pool.Idle()
}

// A child that was started ahead takes one program, of the purpose that it was started
// for, and no other; those of the languages that were used last are kept.
func TestWarmChildren(t *testing.T) {
	languages := []job.Language{"lua", "bash", "sql", "scheme"}
	e := newEngine(t, languages, func(o *Options) { o.Warm = 1 })
	mark := job.Program{Language: "lua", Code: "print(mark) mark = 1"}
	seesNothing := func(p job.Program) {
		t.Helper()
		if r := run(t, e, p); r.Status != job.Completed || r.Stdout.String() != "nil\n" {
			t.Error(shown(r))
		}
	}
	if e.Describe().Warm != 0 {
		t.Error("there are children before the first program")
	}
	seesNothing(mark)
	first := idle(e, "lua")
	if len(first) != 1 || e.Describe().Warm != 1 {
		t.Fatalf("%d children wait after the first program, want 1", len(first))
	}
	seesNothing(mark)
	ended(t, first[0])
	second := idle(e, "lua")
	if len(second) != 1 || second[0] == first[0] {
		t.Fatal("the child that was taken was not replaced by another one")
	}
	for name, p := range map[string]job.Program{
		"a workspace":           {Workspace: newDir(t)},
		"one that is read only": {Workspace: newDir(t), ReadOnly: true},
		"one stream":            {Combined: true},
	} {
		p.Language, p.Code = mark.Language, mark.Code
		seesNothing(p)
		if now := idle(e, "lua"); len(now) != 1 || now[0] != second[0] {
			t.Errorf("a program with %s took the child", name)
		}
	}
	second[0].Kill(job.Crashed, "a test")
	<-second[0].Ended()
	seesNothing(mark) // passes the dead one over
	oldest := idle(e, "lua")
	if len(oldest) != 1 || oldest[0] == second[0] {
		t.Fatal("the dead child was not replaced")
	}
	for language, code := range map[job.Language]string{"bash": "echo 1", "sql": "SELECT 1;", "scheme": "(display 1)"} {
		if r := run(t, e, job.Program{Language: language, Code: code}); r.Status != job.Completed {
			t.Error(shown(r))
		}
	}
	ended(t, oldest[0]) // its language is the fourth last
	var kept []*wire.Worker
	for _, w := range slices.Clone(e.warm) {
		if w.language == "lua" {
			t.Error("the language that was used longest ago has children")
		}
		kept = append(kept, w.pool.Idle()...)
	}
	if len(kept) != mostWarm {
		t.Errorf("%d children wait, want %d", len(kept), mostWarm)
	}
	e.Close()
	for _, w := range kept {
		select {
		case <-w.Ended():
		default:
			t.Error("a child outlived Close")
		}
	}
	// What runs after Close, as a run that was about to start, leaves nothing.
	for range 2 {
		_ = run(t, e, mark)
	}
	if n := len(idle(e, "lua")); n != 0 || e.Describe().Warm != 0 {
		t.Errorf("after Close %d children wait", n)
	}
	e.Close()
	if e := newEngine(t, []job.Language{"lua"}); run(t, e, mark).Status != job.Completed || e.countWarm() != 0 || len(e.warm) != 0 {
		t.Error("children are started though none are asked for")
	}
}

// ended waits for a child's end.
func ended(t *testing.T, w *wire.Worker) {
	t.Helper()
	select {
	case <-w.Ended():
	case <-time.After(30 * time.Second):
		t.Fatal("the child was not used, or outlived its run")
	}
}
