package launcher

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// A profile is a wall in the words of macOS's sandbox-exec(1). Of its rules the
// last that fits holds, and what none fits is refused. It speaks of real paths,
// and looking at a file's metadata is a right of its own: a link leads nowhere
// that its target's own path does not allow.

// systemLibraries are what every process of macOS needs: libraries and the cache
// that the loader keeps of them.
var systemLibraries = []string{
	"/usr/lib", "/System/Library", "/System/Cryptexes", "/System/Volumes/Preboot/Cryptexes", "/private/preboot/Cryptexes",
	"/Library/Apple/System/Library", "/private/var/db/dyld", "/private/var/db/timezone", "/usr/share/zoneinfo",
}

// found is a place with the links on the way there followed.
type found struct {
	Access
	name, real string
}

// profile is the wall around an executable. places are the wall's, found; hidden
// are the real paths of those that it hides.
func (w *Wall) profile(executable string, places []found, hidden []string) string {
	var b strings.Builder
	line := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	line("(version 1)")
	line("(deny default)")
	line("(allow process-info* signal (target self))")
	line("(allow dynamic-code-generation)") // V8 compiles
	line("(allow sysctl-read)")
	line(`(deny sysctl-read (sysctl-name-prefix "kern.proc"))`) // other processes
	line("(allow process-exec (literal %s))", quoted(executable))

	for _, path := range systemLibraries {
		line("(allow file-read* file-map-executable (subpath %s))", quoted(path))
	}
	line(`(allow file-read* file-write-data (literal "/dev/null") (literal "/dev/zero") (subpath "/dev/fd"))`)
	line(`(allow file-read* (literal "/dev/random") (literal "/dev/urandom") (literal "/"))`) // the loader reads the root's own entry

	// What is deeper comes later, so that a place in a hidden directory is seen.
	rules := slices.Clone(places)
	for _, path := range hidden {
		rules = append(rules, found{real: path})
	}
	slices.SortStableFunc(rules, func(a, b found) int {
		return cmp.Or(cmp.Compare(len(a.real), len(b.real)), cmp.Compare(a.Access, b.Access))
	})
	for _, r := range rules {
		if r.Access == 0 {
			line("(deny file-read* file-write* file-map-executable process-exec* (subpath %s))", quoted(r.real))
			continue
		}
		operations := "file-read-metadata" // also where one may only write
		if r.Access&Read != 0 {
			operations += " file-read*"
		}
		if r.Access&Write != 0 {
			operations += " file-write*"
		}
		if r.Access&Execute != 0 {
			operations += " file-map-executable"
		}
		if r.Access&Execute != 0 && w.Processes {
			operations += " process-exec*"
		}
		line("(allow %s (subpath %s))", operations, quoted(r.real))
	}

	ways := map[string]bool{} // to the places
	for _, p := range places {
		for _, path := range []string{p.name, p.real} {
			for ; path != "/"; path = filepath.Dir(path) {
				ways[path] = true
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(ways)) {
		line("(allow file-read-metadata (literal %s))", quoted(path))
	}

	if w.Processes {
		line("(allow process-fork)")
		line("(allow process-info* signal (target same-sandbox))")
	}
	for _, port := range w.Connect {
		line(`(allow network-outbound (remote ip "localhost:%d"))`, port)
	}
	if w.AnyPort {
		line(`(allow network-bind network-inbound (local ip "localhost:*"))`)
	}
	if w.Network {
		line(`(allow network-outbound (remote ip "*:*"))`)
		line(`(allow network-bind network-inbound (local ip "*:*"))`)
		line(`(allow network-outbound (literal "/private/var/run/mDNSResponder"))`) // looks names up
		line(`(allow mach-lookup (global-name "com.apple.dnssd.service"))`)
		line(`(allow file-read* (subpath "/private/etc/ssl/certs") (literal "/private/etc/ssl/cert.pem") (literal "/private/etc/hosts") (literal "/private/etc/services") (literal "/private/etc/protocols"))`)
		line(`(allow file-read* (literal "/private/etc/resolv.conf") (literal "/private/var/run/resolv.conf") (literal "/etc") (literal "/var"))`)
	}
	return b.String()
}

// quoted is a path as a string of the profile's language, in which all but two
// characters stand for themselves.
func quoted(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`
}
