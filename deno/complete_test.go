//go:build !windows

package deno

import (
	"testing"

	"rillbox/supervisor/job"
)

func TestWhatIsUnfinishedWaitsForAnotherLine(t *testing.T) {
	const js, ts = job.JavaScript, job.TypeScript
	for _, row := range []struct {
		language job.Language
		text     string
		want     bool
	}{
		{js, "", false},
		{js, "let x = 1", false},
		{js, "let x = {", true},
		{js, "let x = {\n a: 1 }", false},
		{js, "f(", true},
		{js, "f)", false},
		{js, "`a ${", true},
		{js, "`a\n", true},
		{js, "`a\n`", false},
		{js, "'a", false},
		{js, "/* a", true},
		{js, "// {", false},
		{js, "/[{(]/.test('x')", false},
		{js, "if (x) {", true},
		{js, "await fetch(x)", false},
		{js, "import { a } from 'x'", false},
		{js, "import {", true},
		{js, "<div>", true},
		{ts, "interface A {", true},
		{ts, "type A<T> = T extends", true},
		{ts, "let x: number = 1", false},
		{ts, "enum E { A }", false},
	} {
		if got := unfinished(row.language, row.text); got != row.want {
			t.Errorf("%s %q is unfinished: %v, want %v", row.language, row.text, got, row.want)
		}
	}
}
