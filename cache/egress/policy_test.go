package egress

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPolicy(t *testing.T) {
	for _, row := range []struct {
		policy  Policy
		allowed string // kind:package, host:name, or kind:package<registry
		denied  string
	}{
		{Policy{}, "python:numpy npm:@a/b jsr:@std/csv host:example.com", ""},
		{Policy{Deny: []string{"evil*"}}, "python:numpy npm:good-evil npm:@a/evil host:example.com host:evil.test", "python:evil npm:evil-thing python:Evil.Thing npm:EVIL"},
		{Policy{Deny: []string{"zope.interface"}}, "npm:zope-interface", "python:zope_interface npm:zope.interface"},
		{Policy{Allow: []string{"Zope.*", "six"}}, "python:zope-interface python:zope_event python:six npm:SIX", "python:numpy host:example.com python:zope"},
		{Policy{Allow: []string{"*"}, Deny: []string{"numpy"}}, "python:six npm:@a/b host:example.com", "python:numpy python:NumPy npm:numpy"},
		{Policy{Deny: []string{"*"}}, "", "python:six npm:@a/b jsr:@a/b host:example.com host:localhost"},
		{Policy{Allow: []string{"numpy"}, Deny: []string{"num*"}}, "", "python:numpy python:six"},
		{Policy{Deny: []string{"*.Example.com"}}, "python:six host:example.com", "host:a.example.com host:A.EXAMPLE.COM host:a.example.com. npm:six<a.example.com"},
		{Policy{Deny: []string{"host:10.0.0.1", "host:::1"}}, "host:10.0.0.2", "host:10.0.0.1 host:::ffff:10.0.0.1 host:::FFFF:a00:1 host:0:0::1 host:::1%lo"},
		{Policy{Allow: []string{"demo", "files.example.com"}}, "npm:demo host:files.example.com", "host:example.com host:files.example.com.evil.test npm:other<files.example.com"},
		{Policy{Deny: []string{"@acme/*"}}, "npm:acme npm:@acme-x/y npm:left", "npm:@acme/tools jsr:@acme/tools npm:@ACME/x"},
		{Policy{Allow: []string{"npm:left", "python:six", "jsr:@std/*"}}, "npm:left python:six jsr:@std/csv", "python:left npm:six npm:@std/csv jsr:@other/csv host:left"},
		{Policy{Deny: []string{"npm:left"}}, "python:left jsr:@left/left host:left", "npm:left npm:Left"},
		{Policy{Deny: []string{"host:registry.*"}}, "npm:registry.x npm:left<npm.test", "npm:left<registry.test host:registry.test"},
		{Policy{Allow: []string{"host:npm.acme.test", "six"}}, "npm:any<npm.acme.test npm:any<NPM.acme.test. npm:unknown-yet host:npm.acme.test python:six<elsewhere.test", "npm:any<elsewhere.test host:six"},
		{Policy{Allow: []string{"host:npm.acme.test"}, Deny: []string{"left"}}, "npm:right<npm.acme.test", "npm:left<npm.acme.test npm:left"},
		{Policy{Deny: []string{"@std/csv"}}, "npm:@jsr/std__yaml jsr:@std/yaml npm:@jsr/x npm:std__csv", "jsr:@std/csv npm:@std/csv npm:@jsr/std__csv npm:@JSR/Std__CSV"},
		{Policy{Deny: []string{"jsr:@std/*"}}, "npm:@std/csv", "npm:@jsr/std__csv jsr:@std/csv"},
		{Policy{Deny: []string{"npm:@jsr/*"}}, "npm:@std/csv", "npm:@jsr/std__csv jsr:@std/csv"},
		{Policy{Allow: []string{"*"}, Deny: []string{"@std/csv"}}, "npm:@jsr/std__yaml", "npm:@jsr/std__csv"},
		{Policy{Allow: []string{"npm:*"}}, "npm:left npm:@a/b", "npm:@jsr/std__csv jsr:@std/csv"},
		{Policy{Allow: []string{"npm:*", "@std/csv"}}, "npm:@jsr/std__csv jsr:@std/csv", "npm:@jsr/std__yaml"},
		{Policy{Allow: []string{"npm:@jsr/std__*"}}, "npm:@jsr/std__csv", "npm:@jsr/other__csv jsr:@std/csv"},
		{Policy{Allow: []string{"@std/csv"}}, "jsr:@std/csv", "npm:@jsr/std__csv"},
		{Policy{Allow: []string{"p*"}}, "npm:pad", "host:pypi.test npm:left<pypi.test"},
	} {
		check := func(what string) error {
			kind, name, _ := strings.Cut(what, ":")
			if kind == "host" {
				return row.policy.CheckHost(name)
			}
			name, registry, _ := strings.Cut(name, "<")
			return row.policy.CheckPackage(Kind(kind), name, registry)
		}
		if err := row.policy.Validate(); err != nil {
			t.Errorf("%+v: %v", row.policy, err)
		}
		for name := range strings.FieldsSeq(row.allowed) {
			if err := check(name); err != nil {
				t.Errorf("%+v refuses %s: %v", row.policy, name, err)
			}
		}
		for name := range strings.FieldsSeq(row.denied) {
			if err := check(name); err == nil || !strings.Contains(err.Error(), "the operator denied") {
				t.Errorf("%+v on %s: %v", row.policy, name, err)
			}
		}
	}
	for _, bad := range []string{"", "[a", "npm:", "npm:[", "host:", "a[b-"} {
		if err := (Policy{Deny: []string{bad}}).Validate(); err == nil || !strings.Contains(err.Error(), `"`+bad+`"`) {
			t.Errorf("the glob %q: %v", bad, err)
		}
	}
	if err := (Policy{MinReleaseAge: -time.Hour}).Validate(); err == nil {
		t.Error("a negative age passed")
	}
}

// TestANarrowedPolicy refuses what one or the other refuses, whatever either allows.
func TestANarrowedPolicy(t *testing.T) {
	operator := Policy{Allow: []string{"npm:*", "six", "host:*.acme.test"}, Deny: []string{"evil"}, MinReleaseAge: time.Hour}
	for _, row := range []struct {
		own             Policy
		allowed, denied string
	}{
		{Policy{}, "npm:left python:six host:a.acme.test", "python:numpy<r.test npm:evil host:b.test"},
		{Policy{Allow: []string{"*"}}, "npm:left python:six", "python:numpy<r.test npm:evil host:b.test"},
		{Policy{Allow: []string{"left", "evil", "numpy"}}, "npm:left", "python:six python:numpy<r.test npm:evil python:left<r.test"},
		{Policy{Allow: []string{"host:b.test", "host:a.acme.test"}}, "host:a.acme.test python:x<a.acme.test", "host:b.test host:c.acme.test python:x<b.test npm:left<c.acme.test"},
		{Policy{Deny: []string{"left"}}, "npm:right", "npm:left npm:evil"},
		{Policy{Deny: []string{"*"}}, "", "npm:right python:six host:a.acme.test"},
		{Policy{Allow: []string{"left", "right"}}.Narrow(Policy{Allow: []string{"right", "six"}}), "npm:right", "npm:left python:six"},
	} {
		narrowed := operator.Narrow(row.own)
		for _, what := range append(strings.Fields(row.denied), strings.Fields(row.allowed)...) {
			kind, name, _ := strings.Cut(what, ":")
			name, registry, _ := strings.Cut(name, "<")
			err := narrowed.CheckPackage(Kind(kind), name, registry)
			if kind == "host" {
				err = narrowed.CheckHost(name)
			}
			if want := slices.Contains(strings.Fields(row.allowed), what); (err == nil) != want {
				t.Errorf("%+v on %s: %v", row.own, what, err)
			}
		}
	}
	both := operator.Narrow(Policy{NoFetch: true, MinReleaseAge: time.Minute})
	if !both.NoFetch || both.MinReleaseAge != time.Hour || operator.Narrow(Policy{MinReleaseAge: 2 * time.Hour}).MinReleaseAge != 2*time.Hour {
		t.Errorf("%+v", both)
	}
	keys := map[string]bool{}
	for _, p := range []Policy{
		{}, {MinReleaseAge: 1}, {Allow: []string{"a"}}, {Deny: []string{"a"}}, {Allow: []string{"a", "deny"}}, {Allow: []string{"a"}, Deny: []string{"deny"}}, {Allow: []string{"a deny"}},
		Policy{Allow: []string{"a"}}.Narrow(Policy{Allow: []string{"deny"}}), {Allow: []string{`a" "deny`}},
	} {
		if keys[p.Key()] {
			t.Errorf("%+v has the key of another: %s", p, p.Key())
		}
		keys[p.Key()] = true
	}
}

func TestURLsThatNameDeniedPackages(t *testing.T) {
	p := Policy{Deny: []string{"evil", "@acme/*", "host:bad.test"}}
	for address, refused := range map[string]bool{
		"https://esm.test/left@4":                                            false,
		"https://esm.test/evilish@4/evil.js":                                 false,
		"https://user:secret@esm.test/":                                      false,
		"https://esm.test/evil@4":                                            true,
		"https://esm.test/evil":                                              true,
		"https://esm.test/stable/EVIL@4.0.0/es2022/x":                        true,
		"https://esm.test/*evil@4":                                           true,
		"https://esm.test/%65vil%404":                                        true,
		"https://cdn.test/npm/evil@1/dist/x.js":                              true,
		"https://jsr.test/@acme/x/1.0.0/mod.ts":                              true,
		"https://esm.test/@acme/x@1.0.0":                                     true,
		"https://esm.test/@acme%2Fx@1":                                       true,
		"https://bad.test/left":                                              true,
		"https://BAD.test./left":                                             true,
		"https://esm.test/left@4?target=es2022&deps=right@^1.2,other@>=2 <3": false,
		"https://esm.test/left@4?alias=a:b&deps=@acme-x/y":                   false,
		"https://esm.test/left?deps=evil":                                    true,
		"https://esm.test/left?deps=right@1,evil@1":                          true,
		"https://esm.test/left?deps=%65vil":                                  true,
		"https://esm.test/left?deps=%2565vil":                                true,
		"https://esm.test/left?deps=@acme/x@1":                               true,
		"https://esm.test/left?deps=%40acme%2Fx":                             true,
		"https://esm.test/left?alias=right:evil/sub":                         true,
		"https://esm.test/left?alias=right:EVIL":                             true,
		"https://esm.test/left?evil":                                         true,
		"https://esm.test/left?x=%zz":                                        true,
		"https://esm.test/left?x=\u00e9":                                     true,
		"https://esm.test/;evil":                                             true,
		"https://esm.test/evil&x":                                            true,
		"https://esm.test/x&deps=evil@1/es2022/x.mjs":                        true,
		"https://esm.test/combine/npm/left@1,npm/evil@1":                     true,
		"https://jspm.test/npm:evil@1.0.0/x.js":                              true,
		"https://esm.test/left@npm:evil":                                     true,
		"https://esm.test/left@evil":                                         true,
		"https://esm.test/%2565vil":                                          true,
		"https://esm.test/@acme/./x":                                         true,
		"https://esm.test/@acme//x":                                          true,
		"https://esm.test/@acme/y/../x":                                      true,
		"https://esm.test/left@@acme/x":                                      true,
		"https://esm.test/x%5Cevil":                                          true,
		"https://esm.test/@jsr/acme__x":                                      true,
		"https://esm.test/jsr/@acme/x":                                       true,
		"https://esm.test/~0123456789abcdef":                                 true,
		"https://esm.test/v135/X-ZC9ldmlsQDE/left.mjs":                       true, // d/evil@1
		"https://esm.test/v135/X-ZC9yaWdodEAx/left.mjs":                      false,
		"https://esm.test/\uff45vil":                                         true,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		var denied *DeniedError
		if err := p.CheckURL(u); (err != nil) != refused || err != nil && !errors.As(err, &denied) {
			t.Errorf("%s: %v", address, err)
		} else if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("a password is told: %v", err)
		}
	}
	if err := (Policy{Deny: []string{"evil.test"}}).CheckHost("evil。test"); err == nil {
		t.Error("a host that is denied, with another dot, is not")
	}
	if err := (Policy{MinReleaseAge: time.Hour}).CheckURL(&url.URL{Scheme: "https", Host: "esm.test", Path: "/x"}); err == nil {
		t.Error("a URL passed, whose age nobody knows")
	}
}
