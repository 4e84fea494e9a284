package deno

import (
	"net/url"
	"os"
	"slices"

	"rillbox/cache/egress"
)

// defaultImportHosts are those that Deno 2.9.6 allows URL imports from when
// --allow-import is not given (`deno run --help`).
var defaultImportHosts = []string{
	"deno.land:443", "jsr.io:443", "esm.sh:443", "raw.esm.sh:443", "cdn.jsdelivr.net:443",
	"raw.githubusercontent.com:443", "gist.githubusercontent.com:443",
}

// ImportsFrom says whether modules may be imported from a host (with its port).
func (p Permissions) ImportsFrom(host string) bool {
	everything, hosts := p.Allowed("import")
	if !everything && len(hosts) == 0 {
		hosts = slices.Clone(defaultImportHosts)
		if u, err := url.Parse(os.Getenv("JSR_URL")); err == nil && u.Host != "" {
			hosts = append(hosts, egress.HostPort(u))
		}
	}
	denied := p.grants["deny-import"]
	covers := func(listed string) bool { return hostCovers(listed, host) }
	return (everything || slices.ContainsFunc(hosts, covers)) && !denied.bare && !slices.ContainsFunc(denied.values, covers)
}
