package egress

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzPolicy looks for a pattern that denies one thing and allows another.
func FuzzPolicy(f *testing.F) {
	for _, seed := range [][3]string{{"evil*", "evil-x", "npm.test"}, {"npm:@a/*", "@a/b", ""}, {"host:*.test", "x", "a.test"}, {"*", "", "."}, {"[^a-z]", "é", "\xff"}, {"a\\*", "a*", "::1"}, {"zope.*", "Zope_Interface", "zope.x"}} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, pattern, name, registry string) {
		allow, deny := Policy{Allow: []string{pattern}}, Policy{Deny: []string{pattern}}
		if allow.Validate() != nil {
			return
		}
		for _, kind := range []Kind{NPM, JSR, Python} {
			allowed, denied := allow.CheckPackage(kind, name, "") == nil, deny.CheckPackage(kind, name, "") != nil
			if denied && !allowed {
				t.Errorf("%q: the %s package %q is denied by it and not allowed by it", pattern, kind, name)
			}
			both := Policy{Allow: []string{pattern}, Deny: []string{pattern}}
			if denied && both.CheckPackage(kind, name, registry) == nil {
				t.Errorf("%q: an allowed package that is denied too passed", pattern)
			}
		}
		if allowed, denied := allow.CheckHost(registry) == nil, deny.CheckHost(registry) != nil; allowed != denied && isASCII(registry) {
			t.Errorf("%q: the host %q is allowed: %v, denied: %v", pattern, registry, allowed, denied)
		}
		if u, err := url.Parse("https://" + registry + "/" + name); err == nil {
			if deny.CheckHost(u.Hostname()) != nil && deny.CheckURL(u) == nil {
				t.Errorf("%q: %s is on a denied host", pattern, u)
			}
		}
	})
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}
