package gateway

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Policy is what the operator lets be fetched. The zero value allows all.
type Policy struct {
	// Allow, when it is not empty, names what may be fetched; everything else
	// is refused. Deny names what may not be, and wins over Allow. Both hold
	// globs (path.Match) that are compared with package names, where case and
	// '-', '_', '.' don't matter, and with host names.
	//
	// A wheel by URL needs its name and its host allowed. The hosts that an
	// index's own pages lead to are only checked against Deny: naming packages
	// in Allow would otherwise forbid all of them.
	Allow, Deny []string
	// NoFetch serves from the cache alone.
	NoFetch bool
	// MinReleaseAge hides files of an index that were uploaded more recently,
	// and those whose upload time the index does not tell (PEP 700).
	MinReleaseAge time.Duration
}

// DeniedError says that the operator's policy refuses a package or a host.
type DeniedError struct {
	What string // "package" or "host"
	Name string
	// Listed is the pattern of Policy.Deny that names it; empty when
	// Policy.Allow lacks it.
	Listed string
}

func (e *DeniedError) Error() string {
	if e.Listed == "" {
		return fmt.Sprintf("the operator denied %s %q: it is not among the allowed ones", e.What, e.Name)
	}
	return fmt.Sprintf("the operator denied %s %q: the list of denied ones has %q", e.What, e.Name, e.Listed)
}

// Check returns a *DeniedError when the package called name may not be fetched.
func (p Policy) Check(name string) error {
	name = Normalize(name)
	return p.check("package", name, true, func(pattern string) string { return Normalize(pattern) })
}

// CheckHost returns a *DeniedError when a guest may not name URLs of host.
func (p Policy) CheckHost(host string) error { return p.checkHost(host, true) }

// checkHost looks into Allow only when allow says so.
func (p Policy) checkHost(host string, allow bool) error {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	return p.check("host", host, allow, strings.ToLower)
}

func (p Policy) check(what, name string, allow bool, form func(pattern string) string) error {
	matches := func(pattern string) bool {
		ok, _ := path.Match(form(pattern), name) // valid since New
		return ok
	}
	if i := slices.IndexFunc(p.Deny, matches); i >= 0 {
		return &DeniedError{What: what, Name: name, Listed: p.Deny[i]}
	}
	if allow && len(p.Allow) > 0 && !slices.ContainsFunc(p.Allow, matches) {
		return &DeniedError{What: what, Name: name}
	}
	return nil
}

// validate says which glob is malformed.
func (p Policy) validate() error {
	for _, pattern := range slices.Concat(p.Allow, p.Deny) {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("package pattern %q: %w; write a name or a glob such as \"numpy\" or \"acme-*\"", pattern, err)
		}
		if _, err := path.Match(Normalize(pattern), ""); err != nil {
			return fmt.Errorf("package pattern %q: %w; write a name or a glob such as \"numpy\" or \"acme-*\"", pattern, err)
		}
	}
	if p.MinReleaseAge < 0 {
		return fmt.Errorf("minimum release age %v: must not be negative", p.MinReleaseAge)
	}
	return nil
}
