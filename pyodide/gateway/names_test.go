package gateway

import (
	"net/netip"
	"strings"
	"testing"
)

func TestWheelName(t *testing.T) {
	for _, tc := range []struct{ file, project, version string }{
		{"six-1.17.0-py2.py3-none-any.whl", "six", "1.17.0"},
		{"Flask_Cors-5.0-py3-none-any.whl", "flask-cors", "5.0"},
		{"zope.interface-7.2-cp314-cp314-pyemscripten_2026_0_wasm32.whl", "zope-interface", "7.2"},
		{"a-1!2.0+cpu.1-3b-py3-none-any.whl", "a", "1!2.0+cpu.1"},
		{"six-1.17.0.tar.gz", "", ""},
		{"six-1.17.0-none-any.whl", "", ""},
		{"six-1-2-3-py3-none-any.whl", "", ""},
		{"six-1.0-x1-py3-none-any.whl", "", ""},
		{"-1.0-py3-none-any.whl", "", ""},
		{"six--py3-none-any.whl", "", ""},
		{"../six-1.0-py3-none-any.whl", "", ""},
		{"six\x00-1.0-py3-none-any.whl", "", ""},
		{"six-1.0-py3-none-any.whl\n", "", ""},
		{"six_-1.0-py3-none-any.whl", "", ""},
		{strings.Repeat("a", 300) + "-1.0-py3-none-any.whl", "", ""},
		{"", "", ""},
	} {
		project, version, err := wheelName(tc.file)
		if project != tc.project || version != tc.version || (err == nil) != (tc.project != "") {
			t.Errorf("wheelName(%q) = %q, %q, %v; want %q, %q", tc.file, project, version, err, tc.project, tc.version)
		}
	}
}

func FuzzWheelName(f *testing.F) {
	for _, seed := range []string{"six-1.17.0-py2.py3-none-any.whl", "a-1!2.0+cpu.1-3b-py3-none-any.whl", "a-1-2-3-4.whl", "-----.whl", "é-1-py3-none-any.whl"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, file string) {
		project, version, err := wheelName(file)
		if err != nil {
			return
		}
		if project == "" || version == "" || project != Normalize(project) || !isProjectName(project) {
			t.Errorf("%q: project %q, version %q", file, project, version)
		}
		if strings.ContainsAny(file, "/\\%?#\x00\r\n ") || strings.HasPrefix(file, ".") {
			t.Errorf("%q passed as a file name", file)
		}
	})
}

func TestIsPublic(t *testing.T) {
	for addr, want := range map[string]bool{
		"1.1.1.1": true, "151.101.0.223": true, "2606:4700::1111": true, "64:ff9b::1.1.1.1": true, "203.0.113.80": true, "198.18.0.1": true, "::ffff:1.1.1.1": true,
		"127.0.0.1": false, "127.9.9.9": false, "10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false,
		"192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false, "0.0.0.0": false, "0.1.2.3": false,
		"192.0.0.192": false, "224.0.0.1": false, "240.0.0.1": false, "255.255.255.255": false,
		"::1": false, "::": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd00:ec2::254": false,
		"fec0::1": false, "ff02::1": false, "2002:7f00:1::": false, "2001::1": false,
		"::ffff:127.0.0.1": false, "::ffff:169.254.169.254": false, "::127.0.0.1": false,
		"64:ff9b::10.0.0.1": false, "64:ff9b::169.254.169.254": false, "64:ff9b:1::1": false,
	} {
		if got := isPublic(netip.MustParseAddr(addr)); got != want {
			t.Errorf("isPublic(%s) = %v", addr, got)
		}
	}
}

func TestPolicy(t *testing.T) {
	for _, tc := range []struct {
		policy  Policy
		allowed string // packages, and hosts with a "//" in front
		denied  string
	}{
		{Policy{}, "numpy //example.com", ""},
		{Policy{Deny: []string{"evil*"}}, "numpy good-evil //example.com", "evil evil-thing Evil.Thing"},
		{Policy{Allow: []string{"Zope.*", "six"}}, "zope-interface zope_event six SIX", "numpy //example.com zope"},
		{Policy{Allow: []string{"*"}, Deny: []string{"numpy"}}, "six //example.com", "numpy NumPy"},
		{Policy{Allow: []string{"numpy"}, Deny: []string{"num*"}}, "", "numpy six"},
		{Policy{Deny: []string{"*.Example.com"}}, "six //example.com", "//a.example.com //A.EXAMPLE.COM //a.example.com."},
		{Policy{Allow: []string{"demo", "files.example.com"}}, "demo //files.example.com", "//example.com //files.example.com.evil.test"},
	} {
		check := func(name string) error {
			if host, ok := strings.CutPrefix(name, "//"); ok {
				return tc.policy.CheckHost(host)
			}
			return tc.policy.Check(name)
		}
		for name := range strings.FieldsSeq(tc.allowed) {
			if err := check(name); err != nil {
				t.Errorf("%+v refuses %s: %v", tc.policy, name, err)
			}
		}
		for name := range strings.FieldsSeq(tc.denied) {
			if err := check(name); err == nil || !strings.Contains(err.Error(), "the operator denied") {
				t.Errorf("%+v on %s: %v", tc.policy, name, err)
			}
		}
	}
	if err := (Policy{Deny: []string{"[a"}}).validate(); err == nil || !strings.Contains(err.Error(), `"[a"`) {
		t.Errorf("a malformed glob: %v", err)
	}
}
