package modules

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"rillbox/cache/egress"
	"rillbox/deno/permission"
)

// Specifier is a parsed module specifier of a package or a URL.
type Specifier struct {
	Scheme  string // "npm", "jsr", "https", "http"
	Name    string // the package's name; the whole URL for https and http
	Version string // as asked for: a version, a range, a tag; may be empty
	Path    string // what follows, with its slash: "/fp"; may be empty
}

var (
	packageName    = Pattern(`^(@[a-zA-Z0-9~._-]+/)?[a-zA-Z0-9~_][a-zA-Z0-9~._-]*$`)
	packageVersion = Pattern(`^[a-zA-Z0-9.*^~<>=|+ _-]*$`)
)

// String is the specifier as Deno takes it.
func (s Specifier) String() string { return s.Root() + s.Path }

// texts are specifiers as Deno takes them.
func texts(specifiers []Specifier) []string {
	list := make([]string, len(specifiers))
	for i, s := range specifiers {
		list[i] = s.String()
	}
	return list
}

// Root names the package alone.
func (s Specifier) Root() string {
	if s.IsURL() {
		return s.Name
	}
	if s.Version == "" {
		return s.Scheme + ":" + s.Name
	}
	return s.Scheme + ":" + s.Name + "@" + s.Version
}

func (s Specifier) IsURL() bool { return s.Scheme == "https" || s.Scheme == "http" }

// ParseSpecifier parses npm:, jsr: and URL specifiers, and bare names, which
// are npm's.
func ParseSpecifier(text string) (Specifier, error) {
	scheme, rest, has := strings.Cut(text, ":")
	switch {
	case !has:
		return parsePackage("npm", text, text)
	case scheme == "npm" || scheme == "jsr":
		return parsePackage(scheme, strings.TrimPrefix(rest, "/"), text)
	case scheme == "https" || scheme == "http":
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.User != nil {
			return Specifier{}, fmt.Errorf("%q is not a URL that can be imported", text)
		}
		if !permission.IsPlainHost(egress.HostPort(u)) {
			return Specifier{}, fmt.Errorf("the host of %q can't be judged as it is written: write a name in ASCII (xn--…), an address as 192.0.2.1 or [2001:db8::1]", text)
		}
		return Specifier{Scheme: scheme, Name: text}, nil
	case scheme == "file":
		return Specifier{}, fmt.Errorf("%q names a file of this machine: a package is an npm name, an npm: or jsr: specifier, or an https: URL", text)
	}
	return Specifier{}, fmt.Errorf("%q is not a package: want an npm name (lodash@4), an npm: or jsr: specifier, or an https: URL", text)
}

func parsePackage(scheme, rest, text string) (Specifier, error) {
	s := Specifier{Scheme: scheme}
	scope := ""
	if strings.HasPrefix(rest, "@") {
		var below bool
		if scope, rest, below = strings.Cut(rest, "/"); !below {
			return s, fmt.Errorf("%q has a scope and no package: want @scope/name", text)
		}
		scope += "/"
	}
	name, path, below := strings.Cut(rest, "/")
	name, s.Version, _ = strings.Cut(name, "@")
	s.Name = scope + name
	if below && path != "" {
		s.Path = "/" + path
	}
	switch {
	case !packageName().MatchString(s.Name):
		return s, fmt.Errorf("%q is not a package name: want lodash, lodash@4.17.21, @scope/name, npm:… or jsr:…", text)
	case !packageVersion().MatchString(s.Version):
		return s, fmt.Errorf("%q is not a version that can be asked for, in %q: want 4.17.21, ^4 or a tag", s.Version, text)
	case scheme == "jsr" && scope == "":
		return s, fmt.Errorf("%q has no scope: packages of JSR are jsr:@scope/name", text)
	case strings.ContainsAny(s.Path, "\x00\r\n\\") || slices.Contains(strings.Split(s.Path, "/"), ".."):
		return s, fmt.Errorf("%q has a path that leads out of the package", text)
	}
	return s, nil
}

// builtins are the modules of Node that Deno has, as they are named without node:.
var builtins = strings.Fields(`assert assert/strict async_hooks buffer child_process cluster
	console constants crypto dgram diagnostics_channel dns dns/promises domain events fs
	fs/promises http http2 https inspector inspector/promises module net os path path/posix
	path/win32 perf_hooks process punycode querystring readline readline/promises repl stream
	stream/consumers stream/promises stream/web string_decoder sys timers timers/promises tls
	trace_events tty url util util/types v8 vm wasi worker_threads zlib`)
