//go:build !windows

package deno_test

import (
	"context"
	"strings"
	"testing"

	"rillbox/cache/cachetest"
	"rillbox/deno"
	"rillbox/supervisor"
)

// newEngine makes an engine on the tests' shared cache, with Deno in place.
func newEngine(t testing.TB, flags string, change ...func(*deno.Options)) *deno.Engine {
	t.Helper()
	permissions, err := deno.ParseShell(flags)
	if err != nil {
		t.Fatal(err)
	}
	o := deno.Options{
		Cache:       cachetest.Open(t),
		Permissions: permissions,
		Limits:      supervisor.DefaultLimits(),
		Log:         cachetest.Logger(t),
	}
	for _, c := range change {
		c(&o)
	}
	e, err := deno.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	cachetest.NeedNetwork(t, e.Prepare(t.Context(), func(supervisor.Event) {}))
	return e
}

func ignore(supervisor.Event) {}

func run(t testing.TB, e *deno.Engine, p supervisor.Program) supervisor.Result {
	t.Helper()
	if p.Language == "" {
		p.Language = supervisor.TypeScript
	}
	if p.Timeout == 0 {
		p.Timeout = supervisor.DefaultLimits().Timeout
	}
	r, err := e.Run(context.WithoutCancel(t.Context()), p, ignore)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestHello(t *testing.T) {
	e := newEngine(t, "")
	r := run(t, e, supervisor.Program{
		Code: `console.log("out", Deno.args); console.error("err");
import process from "node:process";
console.log(process.argv.slice(1), Deno.mainModule.split("/").pop(), import.meta.main, import.meta.url === Deno.mainModule);
console.log(await new Response(Deno.stdin.readable).text());
export default { answer: 42 };`,
		Args:  []string{"a", "--b", "--allow-read", "--"},
		Stdin: strings.NewReader("the rest\nof it"),
	})
	t.Logf("%+v\n%s\n%s\n%s %+v", r, r.Stdout, r.Stderr, r.Value, r.Error)
}
