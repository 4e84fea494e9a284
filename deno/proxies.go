package deno

import (
	"slices"
	"strings"
)

// IgnoreProxies hides the variables that name a proxy, but for those of the list of
// Variables, from a program that may not reach every host: Deno looks at them
// whenever it makes an HTTP client, asks no permission for the proxy's address,
// and would let a program that can set them send its requests anywhere.
func (p Permissions) IgnoreProxies(passedOn []string) Permissions {
	if everywhere, _ := p.Allowed("net"); everywhere {
		return p
	}
	return p.With("ignore-env", slices.DeleteFunc(slices.Clone(proxyVariables), func(name string) bool {
		return slices.ContainsFunc(passedOn, func(item string) bool {
			given, _, _ := strings.Cut(item, "=")
			return given == name
		})
	})...)
}

var proxyVariables = strings.Fields("HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy")
