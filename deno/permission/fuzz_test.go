package permission

import (
	"slices"
	"strings"
	"testing"
)

// FuzzNarrow looks for a run that gets more than was granted.
func FuzzNarrow(f *testing.F) {
	for _, seed := range [][2]string{{"--allow-net=example.com", "--allow-net=example.com:80"}, {"-A", "-R"}, {"--allow-net=10.0.0.0/8", "--allow-net=10.1.2.3"}, {"--allow-net=*.x.test", "--allow-net=a.x.test"}, {"--allow-read=/a --deny-read=/a/b", "-R=/a/c"}, {"--allow-env=A*", "-E=AB"}, {"--allow-net=[::1]:80", "-N=[::1]:80"}, {"-N=unix:/x", "-N=unix:/x"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, granted, asked string) {
		p, err := ParseShell(granted)
		if err != nil {
			return
		}
		words := strings.Fields(asked)
		run, err := p.Narrow(words)
		if err != nil {
			return
		}
		if run.All() && !p.All() {
			t.Errorf("%q gives everything to %q", granted, asked)
		}
		for name, g := range run.grants {
			kind := strings.TrimPrefix(name, "allow-")
			everything, values := p.Allowed(kind)
			switch {
			case !isAllow(name), everything:
			case g.bare, len(values) == 0:
				t.Errorf("%q gives %s to %q", granted, name, asked)
			}
		}
		for name, g := range p.grants {
			if isAllow(name) {
				continue
			}
			for _, value := range g.values {
				if !slices.Contains(run.grants[name].values, value) && !run.grants[name].bare {
					t.Errorf("%q no longer has --%s=%s for %q", granted, name, value, asked)
				}
			}
		}
		if _, err := p.Narrow(run.Args()); err != nil {
			t.Errorf("%q gives %q to %q, which it does not grant: %v", granted, run.Args(), asked, err)
		}
	})
}
