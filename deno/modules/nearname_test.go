package modules

import "testing"

func TestNearName(t *testing.T) {
	for name, want := range map[string]string{
		"expres": " (is it express?)", "reactt": " (is it react?)", "lodash": "", "ladash": " (is it lodash?)", "lodahs": " (is it lodash?)",
		"koaa": " (is it koa?)", "ko": "", "none-of-these": "",
	} {
		if got := nearName(name); got != want {
			t.Errorf("%s: have %q, want %q", name, got, want)
		}
	}
}
