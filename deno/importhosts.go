package deno

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
)

// defaultImportHosts are those that Deno 2.9.6 allows URL imports from when
// --allow-import is not given (`deno run --help`).
var defaultImportHosts = []string{
	"deno.land:443", "jsr.io:443", "esm.sh:443", "raw.esm.sh:443", "cdn.jsdelivr.net:443",
	"raw.githubusercontent.com:443", "gist.githubusercontent.com:443",
}

// checkImports refuses URLs on hosts that may not be imported from. Deno checks
// what they import in turn, but takes those on its command line as allowed.
func (p Permissions) checkImports(roots []specifier) error {
	everything, hosts := p.Allowed("import")
	if !everything && len(hosts) == 0 {
		hosts = slices.Clone(defaultImportHosts)
		if u, err := url.Parse(os.Getenv("JSR_URL")); err == nil && u.Host != "" {
			hosts = append(hosts, hostPort(u))
		}
	}
	denied := p.grants["deny-import"]
	for _, root := range roots {
		if !root.isURL() {
			continue
		}
		u, err := url.Parse(root.name)
		if err != nil {
			return &PackageError{Text: fmt.Sprintf("%q is not a URL that can be imported", root.name)}
		}
		host := hostPort(u)
		covers := func(granted string) bool { return hostCovers(granted, host) }
		if !everything && !slices.ContainsFunc(hosts, covers) || denied.bare || slices.ContainsFunc(denied.values, covers) {
			return notImportable(host)
		}
	}
	return nil
}

func notImportable(host string) error {
	return &PackageError{Text: fmt.Sprintf("imports from %s are not allowed here: ask the operator to add it to --allow-import", host)}
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80"}[u.Scheme]
	}
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}
