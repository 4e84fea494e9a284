//go:build !windows

package deno_test

import (
	"strings"
	"testing"

	"rillbox/cache/cachetest"
	"rillbox/deno"
	"rillbox/supervisor/job"
	"rillbox/supervisor/launcher"
)

// TestNativeCode: packages with native code say which permission it needs, and work
// where that was granted, behind every wall; so do those that start a program of theirs.
func TestNativeCode(t *testing.T) {
	_, err := newEngine(t, "").Install(t.Context(), job.Program{Packages: []string{"lightningcss@1.33.0"}}, ignore)
	cachetest.NeedNetwork(t, err)
	for _, row := range []struct{ flag, imports, use, value, refusal string }{
		{
			"--allow-ffi", `import * as css from "npm:lightningcss@1.33.0";`,
			`new TextDecoder().decode(css.transform({ filename: "a.css", code: new TextEncoder().encode("a { color: #ff0000 }"), minify: true }).code)`, `"a{color:red}"`,
			"is native code: the operator can allow it with --allow-ffi in DENO_PERMISSION_ARGS",
		},
		{
			"--allow-run", `import esbuild from "npm:esbuild@0.28.2";`,
			`(await esbuild.transform("let a: number = 1", { loader: "ts" }).finally(() => esbuild.stop())).code`, `"let a = 1;\n"`,
			"Requires run access, to start a program: the operator can allow it with --allow-run in DENO_PERMISSION_ARGS",
		},
	} {
		for level := launcher.Best; level < launcher.Offered().Level || level == launcher.Best; level++ {
			e := newEngine(t, row.flag, func(o *deno.Options) { o.Wall = level })
			if got := run(t, e, job.Program{Code: row.imports + "export default " + row.use}); string(got.Value) != row.value {
				t.Errorf("%s, %v: have %s %+v", row.flag, level, got.Value, got.Error)
			}
			if got := openSession(t, e, job.JavaScript).cell(row.imports + row.use); string(got.Value) != row.value {
				t.Errorf("%s, %v, a cell: have %s %+v", row.flag, level, got.Value, got.Error)
			}
		}
		e := newEngine(t, "")
		if got := run(t, e, job.Program{Code: row.imports + "export default " + row.use}); got.Error == nil || !strings.Contains(got.Error.Message, row.refusal) {
			t.Errorf("nothing granted: have %s %+v, want %s", got.Value, got.Error, row.refusal)
		}
		if got := openSession(t, e, job.JavaScript).cell(row.imports + row.use); got.Error == nil || !strings.Contains(got.Error.Message, row.refusal) {
			t.Errorf("nothing granted, a cell: have %s %+v, want %s", got.Value, got.Error, row.refusal)
		}
	}
}
