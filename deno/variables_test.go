package deno

import (
	"slices"
	"strings"
	"testing"

	"rillbox/cache/cachetest"
	"rillbox/deno/permission"
	"rillbox/supervisor/job"
)

func TestVariables(t *testing.T) {
	t.Setenv("NAMED", "of ours")
	got := permission.Environ([]string{"NAMED", "ABSENT", "A=1", "B=x=y,z\n", "A=2", "EMPTY="})
	if want := []string{"A=2", "B=x=y,z\n", "EMPTY=", "NAMED=of ours"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// What a child has from us is not to be replaced.
func TestVariablesOfOursAreRefused(t *testing.T) {
	e, err := New(Options{Cache: cachetest.Open(t), Limits: job.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	t.Setenv("JSR_URL", "https://jsr.example")
	env, _ := withRegistries(e.environment("/d"), "/h", map[string]string{"": "https://npm.example", "@jsr": "https://jsr.example"})
	env = append(env, (&permission.Surroundings{Programs: true}).Environment()...)
	env = append(env, inspectorLog, "JSR_NPM_URL=", "LD_PRELOAD=", "NODE_OPTIONS=", "OTEL_DENO=", "npm_config_registry=", "=", "a b=", "1A=", "ä=")
	if len(env) < 15 {
		t.Fatalf("the child's environment is %q", env)
	}
	for _, variable := range env {
		if name, _, _ := strings.Cut(variable, "="); permission.CheckVariable(name) == nil {
			t.Errorf("%q can be given to programs", name)
		}
	}
	for _, name := range []string{"LANG", "TZ", "_x9", "API_KEY", "HTTPS_PROXY"} {
		if err := permission.CheckVariable(name); err != nil {
			t.Error(err)
		}
	}
}
