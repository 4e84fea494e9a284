package permission

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseShell(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		{"", ""},
		{"   ", ""},
		{"-A", "--allow-all"},
		{"--allow-all", "--allow-all"},
		{"-R", "--allow-read"},
		{"-RW", "--allow-read --allow-write"},
		{"-RN=example.com", "--allow-net=example.com --allow-read"},
		{"--allow-read=/a,/b", "--allow-read=/a,/b"},
		{"--allow-read=/a --allow-read=/b/../c/", "--allow-read=/a,/c"},
		{`--allow-read="/with space"`, "--allow-read=/with space"},
		{"--allow-net=EXAMPLE.com:443,[::1]:80", "--allow-net=example.com:443,[::1]:80"},
		{"--allow-net=[::FFFF:1.2.3.4]:080,a.b.,010.1.2.3/08,:80", "--allow-net=1.2.3.4:80,a.b,10.0.0.0/8,0.0.0.0:80,127.0.0.1:80,localhost:80"},
		{"-N=127.0.0.1%x.example.com,[::1%lo]:+1,unix:/a/../b,vsock:-1:2:3", "--allow-net=127.0.0.1,[::1]:1,unix:/b,vsock:4294967295:2"},
		{"--deny-net=127.0.0.1:1", "--deny-net=127.0.0.1:1,127.0.0.0/8:1,[::1]:1,localhost:1,0.0.0.0:1,[::]:1"},
		{"--deny-net=localhost", "--deny-net=localhost,127.0.0.0/8,[::1],0.0.0.0,[::]"},
		{"--deny-import=0.0.0.0/0", "--deny-import=0.0.0.0/0,127.0.0.0/8,[::1],localhost,0.0.0.0,[::]"},
		{"--deny-net=10.0.0.1", "--deny-net=10.0.0.1"},
		{"-S=username,userInfo --allow-run=/a/../b,ls", "--allow-run=/b,ls --allow-sys=userInfo"},
		{"--allow-env='A B'", "--allow-env=A B"},
		{"--allow-env=$HOME", "--allow-env=$HOME"},
		{"--allow-read --allow-read=/a", "--allow-read=/a"},
		{"--allow-read=/a --allow-read", "--allow-read=/a"},
		{"--deny-read --deny-read=/a", "--deny-read=/a"},
		{"--deny-read=/a --deny-read", "--deny-read=/a"},
		{"-A --allow-read=/a --deny-net", "--allow-all --deny-net"},
		{"--allow-sys=hostname --allow-run=/bin/ls --allow-ffi=/x.so --allow-import=a.b:1 -I", "--allow-ffi=/x.so --allow-import=a.b:1 --allow-run=/bin/ls --allow-sys=hostname"},
		{"--ignore-env=A --ignore-read=/a", "--ignore-env=A --ignore-read=/a"},
	} {
		p, err := ParseShell(test.line)
		if err != nil {
			t.Errorf("%q: %v", test.line, err)
			continue
		}
		if have := strings.Join(p.Args(), " "); have != test.want {
			t.Errorf("%q: have %q, want %q", test.line, have, test.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, word := range []string{
		"--no-prompt", "--unstable", "--allow-everything", "--allow-hrtime", "--allow-scripts",
		"--allow-scripts=npm:x", "-P", "--permission-set=x", "--config=x", "main.ts", "-", "--", "-X",
		"-RX", "--allow-all=1", "-A=1", "--allow-read=", "--allow-read=/a,,/b", "--inspect", "-r",
		"--allow-net=a\nb", "--v8-flags=--x", "--ALLOW-READ", "--allow-read /etc", "--ignore-net", "allow-read",
		"--deny-all", "-N=*", "-N=https://a.b", "-N=::1", "-N=a:x", "-N=[::1", "-N=1.2.3.4.", "-I=:80", "-S=nothing", "-E=A=B", "-N=K",
	} {
		_, err := Parse([]string{"--allow-net", word})
		if err == nil {
			t.Errorf("%q was accepted", word)
		} else if !strings.Contains(err.Error(), strings.Trim(strings.SplitN(word, "\n", 2)[0], `"`)) {
			t.Errorf("%q: the error does not name the word: %v", word, err)
		}
	}
	if p, err := Parse([]string{"--deny-read=/\xff"}); err == nil {
		t.Errorf("a path that is not UTF-8 was accepted as %q: Deno takes another one for it", p.Args())
	}
	for _, line := range []string{`--allow-read="/a`, "--allow-net; rm", "--allow-net | x", "--allow-net `id`", "--allow-net $(id)", "--allow-read=/a > /b"} {
		if p, err := ParseShell(line); err == nil {
			t.Errorf("%q was accepted as %q", line, p.Args())
		}
	}
}

func TestRelativePathsAreOurs(t *testing.T) {
	p, err := Parse([]string{"--allow-read=data"})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"--allow-read=" + filepath.Join(dir, "data")}; !slices.Equal(p.Args(), want) {
		t.Errorf("have %q, want %q", p.Args(), want)
	}
}

func TestNarrow(t *testing.T) {
	dir := t.TempDir()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ grant, ask, want string }{
		{"-A", "-A", "--allow-all"},
		{"-A", "", ""},
		{"-A", "-R", "--allow-read"},
		{"-A", "-R=/etc -N", "--allow-net --allow-read=/etc"},
		{"-A --deny-net", "-A", "--allow-all --deny-net"},
		{"-A --deny-read=/x", "-R --deny-read=/y", "--allow-read --deny-read=/y,/x"},
		{"", "-R", "refused: --allow-read"},
		{"", "-A", "refused: --allow-all"},
		{"-R", "-A", "refused: --allow-all"},
		{"-R", "-R=/etc", "--allow-read=/etc"},
		{"-R=/etc", "-R", "refused: --allow-read"},
		{"-R=/etc", "-R=/etc/ssl", "--allow-read=/etc/ssl"},
		{"-R=/etc", "-R=/etc2", "refused: --allow-read=/etc2"},
		{"-R=/etc", "-R=/etc/../root", "refused: --allow-read=/root"},
		{"-R=/", "-R=/etc", "--allow-read=/etc"},
		{"-R=" + dir, "-R=" + dir + "/sub", "--allow-read=" + dir + "/sub"},
		{"-W=/a", "-R=/a", "refused: --allow-read=/a"},
		{"-N=example.com", "-N=example.com:443", "--allow-net=example.com:443"},
		{"-N=example.com:443", "-N=example.com", "refused: --allow-net=example.com"},
		{"-N=example.com:443", "-N=example.com:80", "refused: --allow-net=example.com:80"},
		{"-N=example.com", "-N=sub.example.com", "refused: --allow-net=sub.example.com"},
		{"-N=*.example.com", "-N=sub.example.com:1", "--allow-net=sub.example.com:1"},
		{"-N=*.example.com", "-N=badexample.com", "refused: --allow-net=badexample.com"},
		{"-N=10.0.0.0/8", "-N=10.1.2.3:80", "--allow-net=10.1.2.3:80"},
		{"-N=10.0.0.0/8", "-N=11.1.2.3", "refused: --allow-net=11.1.2.3"},
		{"-N=10.0.0.0/16", "-N=10.0.0.0/8", "refused: --allow-net=10.0.0.0/8"},
		{"-N=[::1]", "-N=[::1]:80", "--allow-net=[::1]:80"},
		{"-N=*.example.com", "-N=127.0.0.1%x.example.com", "refused: --allow-net=127.0.0.1"},
		{"-N=*.example.com", "-N=169.254.169.254%x.example.com:80", "refused: --allow-net=169.254.169.254:80"},
		{"-N=*.example.com", "-N=[::1%x.example.com]", "refused: --allow-net=[::1]"},
		{"-I=*.example.com", "-I=127.0.0.1%x.example.com", "refused: --allow-import=127.0.0.1"},
		{"-N=*.example.com", "-N=EXAMPLE.com.,*.x.example.com", "--allow-net=example.com,*.x.example.com"},
		{"-N=10.0.0.0/8", "-N=[::ffff:10.1.2.3],010.001.0.0/16", "--allow-net=10.1.2.3,10.1.0.0/16"},
		{"-N=10.0.0.0/8", "-N=010.1.2.3", "refused: --allow-net=010.1.2.3"},
		{"-N --deny-net=10.0.0.1", "-N=10.0.0.1:80", "refused: --deny-net=10.0.0.1"},
		{"-N --deny-net=10.0.0.0/8", "-N=10.0.0.1", "refused: --deny-net=10.0.0.0/8"},
		{"-N --deny-net=[::ffff:10.0.0.1]", "-N=10.0.0.1:80", "refused: --deny-net=10.0.0.1"},
		{"-N --deny-net=10.0.0.1", "-N=10.0.0.0/8", "--allow-net=10.0.0.0/8 --deny-net=10.0.0.1"},
		{"-N=10.0.0.1 --deny-net=10.0.0.0/8", "-N=10.0.0.1:80", "--allow-net=10.0.0.1:80 --deny-net=10.0.0.0/8"},
		{"-N --deny-net=*.b.a.com", "-N=*.a.com", "refused: --deny-net=*.b.a.com"},
		{"-A --deny-net", "-N=a.com", "refused: --deny-net"},
		{"-A --deny-read=/x", "-R=/x/y", "refused: --deny-read=/x"},
		{"-A --ignore-env=A*", "-E=AB", "refused: --ignore-env=A*"},
		{"-R=/x/y --deny-read=/x", "-R=/x/y/z", "--allow-read=/x/y/z --deny-read=/x"},
		{"-A --deny-run=rm", "--allow-run=/bin/rm", "refused: --deny-run=rm"},
		{"--allow-run=/bin/l*", "--allow-run=/bin/ls", "refused: --allow-run=/bin/ls"},
		{"-W=/a --allow-run=/a/tool,ls", "-W=/a", "--allow-write=/a --deny-write=/a/tool"},
		{"-W=/a --allow-run=/a/tool,ls", "-W=/a/tool/x", "refused: --deny-write=/a/tool"},
		{"-E=A,B", "-E=B", "--allow-env=B"},
		{"-E=AWS_*", "-E=AWS_X", "--allow-env=AWS_X"},
		{"-E=A", "-E=AB", "refused: --allow-env=AB"},
		{"-E=A --deny-env=B --ignore-env=C", "-E=A --ignore-env", "refused: --ignore-env"},
		{"--allow-run=ls", "--allow-run", "refused: --allow-run"},
		{"-I=example.com", "", "--allow-import=example.com"},
		{"-I=example.com,b.com", "-I=b.com", "--allow-import=b.com"},
		{"-I=example.com --deny-import=x", "-I=c.com", "refused: --allow-import=c.com"},
		{"-R=/a", "--inspect", "refused: --inspect"},
	} {
		grant, err := ParseShell(test.grant)
		if err != nil {
			t.Fatal(err)
		}
		before := grant.Args()
		narrow, err := grant.Narrow(append([]string{}, strings.Fields(test.ask)...))
		refused, isRefused := strings.CutPrefix(test.want, "refused: ")
		switch {
		case isRefused && err == nil:
			t.Errorf("granted %q, asked %q: got %q, want it refused", test.grant, test.ask, narrow.Args())
		case isRefused && !strings.Contains(err.Error(), refused):
			t.Errorf("granted %q, asked %q: the error does not name %q: %v", test.grant, test.ask, refused, err)
		case isRefused:
		case err != nil:
			t.Errorf("granted %q, asked %q: %v", test.grant, test.ask, err)
		case strings.Join(narrow.Args(), " ") != test.want:
			t.Errorf("granted %q, asked %q: have %q, want %q", test.grant, test.ask, narrow.Args(), test.want)
		}
		if !slices.Equal(before, grant.Args()) {
			t.Errorf("narrowing changed the grant from %q to %q", before, grant.Args())
		}
	}
	if p, err := mustParse(t, "-R=/a").Narrow(nil); err != nil || !slices.Equal(p.Args(), []string{"--allow-read=/a"}) {
		t.Errorf("no list must keep the grant: %q, %v", p.Args(), err)
	}
	operator, client := mustParse(t, "-R=/a -E=A,B"), []string{"--allow-env=A", "--deny-read=/a/x"}
	if p, err := operator.Narrow(client, nil); err != nil || strings.Join(p.Args(), " ") != "--allow-env=A --deny-read=/a/x" {
		t.Errorf("a run that asks for nothing less has %q, %v", p.Args(), err)
	}
	if p, err := operator.Narrow(client, []string{"--allow-env=B"}); err == nil {
		t.Errorf("a run has more than its client: %q", p.Args())
	}
	if p, err := operator.Narrow(client, []string{}); err != nil || strings.Contains(strings.Join(p.Args(), " "), "allow") {
		t.Errorf("a run that asks for nothing has %q, %v", p.Args(), err)
	}
}

func TestWith(t *testing.T) {
	for _, test := range []struct{ flags, want string }{
		{"", "--allow-read=/own"},
		{"-R", "--allow-read"},
		{"-A", "--allow-all"},
		{"-R=/a", "--allow-read=/a,/own"},
		{"--deny-read", "--allow-read=/own"},
		{"-R=/a --deny-read", "--allow-read=/own"},
		{"-A --deny-read", "--allow-env --allow-ffi --allow-import --allow-net --allow-read=/own --allow-run --allow-sys --allow-write"},
		{"-A --deny-read=/x", "--allow-all --deny-read=/x"},
		{"-R --ignore-read", "--allow-read=/own --ignore-read"},
	} {
		p := mustParse(t, test.flags)
		if have := strings.Join(p.With("allow-read", "/own").Args(), " "); have != test.want {
			t.Errorf("%q: have %q, want %q", test.flags, have, test.want)
		}
	}
}

func TestPathsWithACommaAreRefused(t *testing.T) {
	if err := CheckPaths("/a", "/b c"); err != nil {
		t.Error(err)
	}
	if err := CheckPaths("/a", "/b,c/d"); err == nil || !strings.Contains(err.Error(), "/b,c/d") {
		t.Errorf("the error is %v", err)
	}
}

func TestReadWriteOverlap(t *testing.T) {
	for _, test := range []struct{ flags, want string }{
		{"", ""}, {"-R", ""}, {"-W", ""}, {"-R=/a -W=/b", ""}, {"-R=/a -W=/ab", ""},
		{"-RW", "/"}, {"-A", "/"}, {"-R=/a -W=/a", "/a"}, {"-R=/a/b -W=/a", "/a/b"},
		{"-R=/a -W=/a/b", "/a/b"}, {"-R -W=/b", "/b"}, {"-W -R=/c", "/c"},
	} {
		if have, _ := mustParse(t, test.flags).ReadWriteOverlap(); have != test.want {
			t.Errorf("%q: have %q, want %q", test.flags, have, test.want)
		}
	}
}

func mustParse(t testing.TB, line string) Permissions {
	t.Helper()
	p, err := ParseShell(line)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// FuzzParseShell looks for a line that gets through and is not made of
// permission flags alone, or that changes when it is parsed again.
func FuzzParseShell(f *testing.F) {
	for _, seed := range []string{"", "-A", "-RW=/a,b", `--allow-net="x y" --deny-run`, "--allow-read=$HOME `x`", "-I --ignore-env=A", "\x00", "--allow-env=\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		p, err := ParseShell(line)
		if err != nil {
			return
		}
		args := p.Args()
		for _, arg := range args {
			name, value, valued := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
			if _, known := permissionFlags[name]; !known && arg != "--allow-all" || valued && value == "" || strings.ContainsAny(arg, "\x00\n") {
				t.Errorf("%q let %q through", line, arg)
			}
		}
		again, err := Parse(args)
		if err != nil || !slices.Equal(again.Args(), args) {
			t.Errorf("%q: %q became %q, %v", line, args, again.Args(), err)
		}
		if _, err := p.Narrow(args); err != nil {
			t.Errorf("%q: what was granted is not within itself: %v", line, err)
		}
		if _, err := (Permissions{}).Narrow(args); err == nil && slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--allow-") }) {
			t.Errorf("%q: %q is within nothing", line, args)
		}
	})
}
