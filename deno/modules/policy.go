package modules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rillbox/cache/egress"
	"rillbox/deno/permission"
)

func refusal(err error) error { return &PackageError{Text: err.Error()} }

// checkRoots refuses what can be refused before anything is fetched. Deno checks
// what URLs import in turn, but takes those on its command line as allowed.
func checkRoots(policy egress.Policy, permissions permission.Permissions, roots []Specifier) error {
	for _, root := range roots {
		if !root.IsURL() {
			if err := policy.CheckPackage(egress.Kind(root.Scheme), root.Name, ""); err != nil {
				return refusal(err)
			}
			continue
		}
		u, err := checkURL(policy, root.Name)
		if err != nil {
			return refusal(err)
		}
		if host := egress.HostPort(u); !permissions.ImportsFrom(host) {
			return refusal(fmt.Errorf(notImportable, host))
		}
	}
	return nil
}

const notImportable = "imports from %[1]s are not allowed here: ask the operator to add it to --allow-import"

func checkURL(policy egress.Policy, address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%q is not a URL that can be imported", address)
	}
	return u, policy.CheckURL(u)
}

// check refuses a plan that holds anything that the policy denies, however it
// came to be needed.
func (p Plan) check(policy egress.Policy) error {
	if !policy.Restricts() {
		return nil
	}
	checkAll := func(kind egress.Kind, packages map[string]lockedPackage, registry func(name string) string) error {
		for _, key := range slices.Sorted(maps.Keys(packages)) {
			name, _ := splitKey(key)
			if err := policy.CheckPackage(kind, name, registry(name)); err != nil {
				return neededBy(err, name, packages)
			}
		}
		return nil
	}
	if err := checkAll(egress.NPM, p.Locked.NPM, p.registryHost); err != nil {
		return err
	}
	if err := checkAll(egress.JSR, p.Locked.JSR, func(string) string { return hostname(jsrURL()) }); err != nil {
		return err
	}
	addresses := slices.Sorted(maps.Keys(p.Locked.Remote))
	for _, from := range slices.Sorted(maps.Keys(p.Locked.Redirects)) {
		for _, end := range []string{from, p.Locked.Redirects[from]} {
			if strings.HasPrefix(end, "https:") || strings.HasPrefix(end, "http:") { // those of jsr: are not URLs
				addresses = append(addresses, end)
			}
		}
	}
	for _, address := range addresses {
		if _, err := checkURL(policy, address); err != nil {
			return err
		}
	}
	return nil
}

// jsrURL is the registry of jsr: packages.
func jsrURL() string { return cmp.Or(os.Getenv("JSR_URL"), "https://jsr.io/") }

// registryHost is the host of the registry that an npm package came from.
func (p Plan) registryHost(name string) string {
	scope, _, scoped := strings.Cut(name, "/")
	if address, known := p.Registries[scope]; scoped && known {
		return hostname(address)
	}
	return hostname(p.Registries[""])
}

// hostname is the host of a URL, without its port; empty where that is none.
func hostname(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// neededBy adds to an error which package depends on the one that it is about, if
// one of the others does.
func neededBy(err error, name string, packages map[string]lockedPackage) error {
	isIt := func(need string) bool {
		other, _ := splitKey(strings.TrimPrefix(strings.TrimPrefix(need, "npm:"), "jsr:"))
		return other == name
	}
	for _, key := range slices.Sorted(maps.Keys(packages)) {
		if slices.ContainsFunc(packages[key].Dependencies, isIt) || slices.ContainsFunc(packages[key].OptionalDependencies, isIt) {
			dependent, _ := splitKey(key)
			return fmt.Errorf("%w (%s needs it)", err, dependent)
		}
	}
	return err
}

// DefaultAge is Deno's own minimum release age for npm and JSR, where none is asked for.
const DefaultAge = 24 * time.Hour

// minutes is an age as Deno takes it, rounded up.
func minutes(age time.Duration) int { return int((age + time.Minute - 1) / time.Minute) }

// checkAge refuses an npm package, unpacked in dir, whose registry does not tell
// that the version is old enough. Deno asked the same, and takes versions whose
// age is not told.
func checkAge(policy egress.Policy, name, version, dir string) error {
	if policy.MinReleaseAge <= 0 {
		return nil
	}
	var about struct {
		Time map[string]string `json:"time"`
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(dir), "registry.json"))
	if err == nil {
		err = json.Unmarshal(text, &about)
	}
	if err != nil {
		return fmt.Errorf("read what the registry says of %s: %w", name, err)
	}
	released, err := time.Parse(time.RFC3339, about.Time[version])
	switch {
	case err != nil:
		return refusal(fmt.Errorf("the operator asks for a minimum release age, and the registry does not tell when %s %s was released", name, version))
	case time.Since(released) < policy.MinReleaseAge:
		return refusal(fmt.Errorf("%s %s is younger than the minimum release age that the operator asks for (%v)", name, version, policy.MinReleaseAge))
	}
	return nil
}
