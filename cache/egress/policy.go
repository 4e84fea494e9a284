package egress

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Policy is what the operator lets be fetched for programs, and used of what
// was fetched before. The zero value allows all.
//
// Allow, when it is not empty, names what may be; everything else is refused.
// Deny names what may not be, and wins over Allow. Both hold globs, whose '*'
// stands for any characters, '/' among them:
//
//	lodash, @acme/*   packages of this name, whatever kind they are; upper and
//	                  lower case don't matter, nor do '-', '_', '.' in Python's
//	npm:lodash        packages of one kind: npm, jsr or python
//	host:*.acme.test  hosts: of URLs that programs name, of registries, and of
//	                  what these lead to; in Allow, all that a registry there has
//	files.acme.test   with a dot, or "*" alone: hosts as well as packages, but no
//	                  registry is allowed by it
//
// What has a name and a URL, a wheel by URL, needs both allowed. The hosts that
// a registry's answers lead to are only looked for in Deny: naming packages in
// Allow would otherwise forbid all of them.
type Policy struct {
	Allow, Deny []string
	// NoFetch serves from the cache alone.
	NoFetch bool
	// MinReleaseAge hides releases that are younger, and those whose registry
	// does not tell. URLs never tell and are refused. 0 means any.
	MinReleaseAge time.Duration

	more [][]string // further lists like Allow, each of which must allow, too
}

// Narrow gives the policy that refuses what p or another one refuses.
func (p Policy) Narrow(other Policy) Policy {
	p.Deny = slices.Concat(p.Deny, other.Deny)
	p.more = slices.Clip(p.more)
	for _, list := range append([][]string{other.Allow}, other.more...) {
		switch {
		case len(list) == 0:
		case len(p.Allow) == 0:
			p.Allow = list
		default:
			p.more = append(p.more, list)
		}
	}
	p.NoFetch = p.NoFetch || other.NoFetch
	p.MinReleaseAge = max(p.MinReleaseAge, other.MinReleaseAge)
	return p
}

// Key is what p refuses, as one value to compare; whether it fetches is no part of it.
func (p Policy) Key() string {
	return fmt.Sprintf("%v %q %q %q", p.MinReleaseAge, p.Allow, p.Deny, p.more)
}

// allowLists are the lists of which each must allow; there may be none.
func (p Policy) allowLists() [][]string {
	if len(p.Allow) == 0 {
		return p.more
	}
	return append([][]string{p.Allow}, p.more...)
}

// AllowsRegistries says that packages may be allowed by the registry that they are from.
func (p Policy) AllowsRegistries() bool {
	return slices.ContainsFunc(p.allowLists(), func(list []string) bool { return len(registries(list)) > 0 })
}

// registries are the patterns of a list of allowed ones that allow all of a registry.
func registries(allowed []string) []string {
	return slices.DeleteFunc(slices.Clone(allowed), func(pattern string) bool { return !strings.HasPrefix(pattern, hostKind+":") })
}

// Kind is where a package's name has its meaning.
type Kind string

// The kinds of packages.
const (
	NPM    Kind = "npm"
	JSR    Kind = "jsr"
	Python Kind = "python"
)

const hostKind = "host"

// DeniedError says that the operator's policy refuses a package, a host or a
// URL.
type DeniedError struct {
	What string // "package", "host", "URL"
	Name string
	// Listed is the pattern of Policy.Deny that names it; empty when
	// Policy.Allow lacks it.
	Listed string
	// Unclear is the part of a URL that might name anything.
	Unclear string
}

func (e *DeniedError) Error() string {
	if e.Unclear != "" {
		return fmt.Sprintf("the operator denied %s %q: packages are denied by name, and what %q names can't be told", e.What, e.Name, e.Unclear)
	}
	if e.Listed == "" {
		return fmt.Sprintf("the operator denied %s %q: it is not among the allowed ones", e.What, e.Name)
	}
	return fmt.Sprintf("the operator denied %s %q: the list of denied ones has %q", e.What, e.Name, e.Listed)
}

// CheckPackage returns a *DeniedError when the package called name may not be
// used. registry is the host that it comes from; empty, when that is not known
// yet, stands for one that may be allowed: check again when it is known.
func (p Policy) CheckPackage(kind Kind, name, registry string) error {
	name, registry = normal(kind, name), normal(hostKind, registry)
	if pattern, ok := p.denies(kind, name); ok {
		return &DeniedError{What: "package", Name: name, Listed: pattern}
	}
	if pattern, ok := find(p.Deny, hostKind, registry); ok && registry != "" {
		return &DeniedError{What: "host", Name: registry, Listed: pattern}
	}
	for _, list := range p.allowLists() {
		if allows(list, kind, name) {
			continue
		}
		registries := registries(list)
		if _, ok := find(registries, hostKind, registry); !ok && (registry != "" || len(registries) == 0) {
			return &DeniedError{What: "package", Name: name}
		}
	}
	return nil
}

// twin is the other name of a package of JSR, which npm clients get as
// "@jsr/scope__name" what Deno gets as jsr:@scope/name.
func twin(kind Kind, name string) (otherKind Kind, other string, ok bool) {
	scope, rest, scoped := strings.Cut(name, "/")
	switch {
	case kind == JSR && scoped && strings.HasPrefix(scope, "@"):
		return NPM, jsrScope + scope[1:] + "__" + rest, true
	case kind == NPM && strings.HasPrefix(name, jsrScope):
		if scope, rest, ok = strings.Cut(rest, "__"); ok {
			return JSR, "@" + scope + "/" + rest, true
		}
	}
	return "", "", false
}

const jsrScope = "@jsr/"

// denies says that a package is denied under any of its names, which are in their
// normal form.
func (p Policy) denies(kind Kind, name string) (pattern string, ok bool) {
	if pattern, ok = find(p.Deny, kind, name); ok {
		return pattern, ok
	}
	if kind, name, ok = twin(kind, name); ok {
		return find(p.Deny, kind, name)
	}
	return "", false
}

// allows says that a list allows the name in which a package will be used; an npm
// name of JSR's is allowed by a pattern for those, or if the package itself is, too.
func allows(list []string, kind Kind, name string) bool {
	if _, ok := find(list, kind, name); !ok {
		return false
	}
	otherKind, other, ok := twin(kind, name)
	if kind != NPM || !ok {
		return true
	}
	if _, ok := find(list, otherKind, other); ok {
		return true
	}
	forJSR := slices.DeleteFunc(slices.Clone(list), func(pattern string) bool {
		return !strings.HasPrefix(strings.TrimPrefix(strings.ToLower(pattern), string(NPM)+":"), jsrScope)
	})
	_, ok = find(forJSR, kind, name)
	return ok
}

// CheckHost returns a *DeniedError when a program may not name URLs of host.
func (p Policy) CheckHost(host string) error {
	if err := p.CheckLink(host); err != nil {
		return err
	}
	for _, list := range p.allowLists() {
		if _, ok := find(list, hostKind, normal(hostKind, host)); !ok {
			return &DeniedError{What: "host", Name: normal(hostKind, host)}
		}
	}
	return nil
}

// CheckLink returns a *DeniedError when nothing may be fetched from host,
// though a registry leads there.
func (p Policy) CheckLink(host string) error {
	host = normal(hostKind, host)
	if p.Restricts() && strings.ContainsFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) { // such letters, dots among them, stand for others
		return refuse("the host %q can't be judged as it is written: write it in ASCII (xn--…)", host)
	}
	if pattern, ok := find(p.Deny, hostKind, host); ok {
		return &DeniedError{What: "host", Name: host, Listed: pattern}
	}
	return nil
}

// CheckURL returns a *DeniedError when a module may not be imported from u:
// because of its host, or because its path or its query names a denied package,
// as those of hosts do that serve npm's or JSR's ("https://esm.sh/evil@1",
// "…/x?deps=evil"), or may name any.
func (p Policy) CheckURL(u *url.URL) error {
	if err := p.CheckHost(u.Hostname()); err != nil {
		return err
	}
	if p.MinReleaseAge > 0 {
		return refuse("the operator asks for a minimum release age, which a URL such as %s does not tell: use a release of a registry (npm:, jsr:)", u.Redacted())
	}
	if !slices.ContainsFunc(p.Deny, func(pattern string) bool { return !strings.HasPrefix(pattern, hostKind+":") }) {
		return nil // no package is
	}
	query, err := url.QueryUnescape(u.RawQuery)
	if err != nil {
		return &DeniedError{What: "URL", Name: u.Redacted(), Unclear: u.RawQuery}
	}
	for _, text := range []string{u.Path, path.Clean("/" + u.Path), query} {
		if err := p.checkNames(u, text); err != nil {
			return err
		}
	}
	return nil
}

var (
	// names are parts of a URL in which packages may be named, with their scopes
	// and versions.
	names = regexp.MustCompile(`[A-Za-z0-9._~@/-]+`)
	// unclear are characters by which a name could be written otherwise.
	unclear = regexp.MustCompile(`[%\\]|[^ -~]`)
)

// checkNames refuses what text, of u, names.
func (p Policy) checkNames(u *url.URL, text string) error {
	denied := &DeniedError{What: "URL", Name: u.Redacted()}
	if unclear.MatchString(text) {
		denied.Unclear = text
		return denied
	}
	for _, found := range names.FindAllString(text, -1) {
		scope := ""
		for part := range strings.SplitSeq(found, "/") {
			if part == "" || part == "." {
				continue
			}
			if strings.HasPrefix(part, "~") { // what somebody had built
				denied.Unclear = part
				return denied
			}
			if coded, ok := strings.CutPrefix(part, "X-"); ok { // "?deps" and the like, in a path
				if text, err := base64.RawURLEncoding.DecodeString(coded); err == nil {
					if err := p.checkNames(u, string(text)); err != nil {
						return err
					}
				}
			}
			for i, name := range strings.Split(part, "@") {
				candidates := []string{name}
				if i == 0 {
					candidates = append(candidates, scope+name)
				}
				for _, name := range candidates {
					for _, kind := range []Kind{NPM, JSR} {
						if pattern, ok := p.denies(kind, normal(kind, name)); ok && name != "" {
							denied.Listed = pattern
							return denied
						}
					}
				}
			}
			scope = ""
			if at := strings.LastIndex(part, "@"); at >= 0 {
				scope = part[at:] + "/"
			}
		}
	}
	return nil
}

// Restricts says whether what is in the cache may still be refused.
func (p Policy) Restricts() bool {
	return len(p.allowLists()) > 0 || len(p.Deny) > 0 || p.MinReleaseAge > 0
}

// Validate says which glob is malformed.
func (p Policy) Validate() error {
	for _, pattern := range slices.Concat(p.Allow, p.Deny, slices.Concat(p.more...)) {
		for _, kind := range []Kind{NPM, Python, hostKind} {
			glob, applies := globFor(pattern, kind)
			if _, err := path.Match(glob, ""); applies && (err != nil || glob == "") {
				return fmt.Errorf("package pattern %q: want a name or a glob such as \"numpy\", \"npm:@acme/*\" or \"host:files.acme.test\"", pattern)
			}
		}
	}
	if p.MinReleaseAge < 0 {
		return fmt.Errorf("minimum release age %v: must not be negative", p.MinReleaseAge)
	}
	return nil
}

// find finds the pattern that name, in its normal form, matches as a kind.
func find(patterns []string, kind Kind, name string) (pattern string, ok bool) {
	i := slices.IndexFunc(patterns, func(pattern string) bool {
		glob, applies := globFor(pattern, kind)
		matches, _ := path.Match(glob, flat(name)) // valid since Validate
		return applies && matches
	})
	if i < 0 {
		return "", false
	}
	return patterns[i], true
}

// globFor gives the glob that a pattern has for names of a kind, if any.
func globFor(pattern string, kind Kind) (glob string, applies bool) {
	glob = pattern
	if prefix, rest, ok := strings.Cut(pattern, ":"); ok && slices.Contains([]Kind{NPM, JSR, Python, hostKind}, Kind(prefix)) {
		if Kind(prefix) != kind {
			return "", false
		}
		glob = rest
	} else if kind == hostKind && pattern != "*" && !strings.Contains(pattern, ".") {
		return "", false
	}
	return flat(normal(kind, glob)), true
}

// flat takes the meaning of a separator from '/', so that '*' matches it.
func flat(name string) string { return strings.ReplaceAll(name, "/", "\x01") }

// normal is the form in which names of a kind are compared.
func normal(kind Kind, name string) string {
	switch kind {
	case Python:
		return NormalizePython(name)
	case hostKind:
		return normalHost(name)
	}
	return strings.ToLower(name)
}

// normalHost is a host in the form in which it is connected to: an address that
// IPv6 wraps is that address.
func normalHost(name string) string {
	if address, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return address.Unmap().WithZone("").String()
	}
	return strings.TrimSuffix(strings.ToLower(name), ".")
}

var pythonSeparators = regexp.MustCompile(`[-_.]+`)

// NormalizePython is a Python project's name as indexes compare it (PEP 503):
// lower case, with runs of '-', '_' and '.' as one '-'.
func NormalizePython(name string) string {
	return strings.ToLower(pythonSeparators.ReplaceAllString(name, "-"))
}
