package permission

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"rillbox/supervisor/launcher"
)

// Narrow gives the permissions of one run that asks for these flags only: p must
// cover what they allow; what p denies or ignores stays so. nil asks for all of p, an
// empty list for nothing. --allow-import stays p's unless the flags have it, because
// it bounds fetching and not the guest. Of several lists, each narrows what the one
// before it left.
func (p Permissions) Narrow(lists ...[]string) (Permissions, error) {
	var err error
	for _, words := range lists {
		if words != nil {
			if p, err = p.narrow(words); err != nil {
				return Permissions{}, err
			}
		}
	}
	return p, nil
}

func (p Permissions) narrow(words []string) (Permissions, error) {
	asked, err := Parse(words)
	if err != nil {
		return Permissions{}, err
	}
	count := 0
	for _, want := range asked.grants {
		count += len(want.values)
	}
	if count > maxNarrowed {
		return Permissions{}, fmt.Errorf("permissions with %d values: %d are allowed", count, maxNarrowed)
	}
	if asked.all && !p.all {
		return Permissions{}, notGranted("--allow-all")
	}
	for name, want := range asked.grants {
		if !isAllow(name) {
			continue
		}
		if err := p.covers(name, want); err != nil {
			return Permissions{}, err
		}
	}
	for name, g := range p.grants {
		if isAllow(name) {
			if _, said := asked.grants[name]; name == "allow-import" && !said && !asked.all {
				asked.grants[name] = g
			}
			continue
		}
		mine := asked.grants[name]
		if mine.bare && !g.bare { // Deno knows one or the other
			return Permissions{}, fmt.Errorf("--%s: the operator names values for it, beside which it can't be asked for without any: name what it is for, or leave it out", name)
		}
		mine.bare = mine.bare || g.bare
		asked.grants[name] = mine.with(g.values...)
	}
	if _, writes := asked.grants["allow-write"]; writes {
		asked = asked.With("deny-write", p.runs()...)
	}
	if asked.opened = p.opened; asked.opened != nil { // what it names has to be what was granted, too
		s := Surroundings{wall: launcher.Wall{Level: launcher.Best.Offered(), Links: map[string]string{}}}
		defer s.Close()
		if err := s.grant(asked); err != nil {
			return Permissions{}, err
		}
	}
	return asked, nil
}

// maxNarrowed bounds the values that a run may ask for: each path is opened.
const maxNarrowed = 512

func notGranted(flag string) error {
	return fmt.Errorf("permission %s was not granted by the operator: a run may narrow what was granted, never widen it; ask the operator to add it, or leave it out", flag)
}

// covers checks that p grants every value of want.
func (p Permissions) covers(name string, want grant) error {
	kind := strings.TrimPrefix(name, "allow-")
	everything, values := p.Allowed(kind)
	if want.bare && !everything {
		return notGranted("--" + name)
	}
	if everything {
		values = []string{""} // stands for the flag without values
	}
	for _, value := range want.values {
		err := notGranted("--" + name + "=" + value)
		for _, granted := range values {
			if granted != "" && !valueCovers(permissionFlags[name], granted, value) {
				continue
			}
			denied := p.outweighed(kind, granted, value)
			if denied == "" {
				err = nil
				break
			}
			err = fmt.Errorf("permission --%s=%s would outweigh what the operator denied with %s, in Deno's order of the two: ask for all that was granted, or for something else", name, value, denied)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// outweighed gives a denial of p that holds against what was granted (empty:
// everything of the kind) but would not hold against a run's value, within that. Of
// the values that fit what a guest wants, Deno goes by the first in its order, and by
// flags without values last; so a narrower value can come before a denial that came
// before the granted one.
func (p Permissions) outweighed(kind, granted, value string) string {
	for _, flag := range []string{"deny-" + kind, "ignore-" + kind} {
		if p.grants[flag].bare && granted == "" {
			return "--" + flag
		}
		denials := p.grants[flag].values
		if flag == "deny-write" {
			denials = slices.Concat(denials, p.runs())
		}
		for _, denied := range denials {
			if meets(permissionFlags[flag], denied, value) && !first(permissionFlags[flag], denied, value) &&
				(granted == "" || first(permissionFlags[flag], denied, granted)) {
				return "--" + flag + "=" + denied
			}
		}
	}
	return ""
}

// runs are the paths of the programs that --allow-run names. Deno refuses writing to
// them, and so must a run that has not asked for them: another run may start them.
func (p Permissions) runs() []string {
	_, programs := p.Allowed("run")
	return slices.DeleteFunc(programs, func(program string) bool { return !strings.Contains(program, "/") })
}

// valueCovers says that everything that value stands for is granted.
func valueCovers(kind valueKind, granted, value string) bool {
	switch kind {
	case pathValue:
		return Within(value, granted) // no link is followed below what is granted; see Surroundings.open
	case hostValue:
		return HostCovers(granted, value)
	case envValue:
		prefix, wildcard := strings.CutSuffix(granted, "*")
		return granted == value || wildcard && strings.HasPrefix(strings.TrimSuffix(value, "*"), prefix)
	default:
		return granted == value
	}
}

// meets says that what is denied and what is allowed have something in common.
func meets(kind valueKind, denied, allowed string) bool {
	switch kind {
	case pathValue:
		return Within(denied, allowed) || Within(allowed, denied)
	case hostValue:
		d, a := mustHost(denied), mustHost(allowed)
		return d.meets(a)
	case runValue: // a denied name stands for every program of this name, whatever its case and its ending
		name := strings.ToLower(filepath.Base(allowed))
		denied = strings.ToLower(filepath.Base(denied))
		return name == denied || strings.HasPrefix(name, denied+".")
	default:
		return valueCovers(kind, denied, allowed) || valueCovers(kind, allowed, denied)
	}
}

// first says that Deno looks at the denial first, where both have something in
// common.
func first(kind valueKind, denied, allowed string) bool {
	switch kind {
	case pathValue:
		return Within(denied, allowed)
	case hostValue:
		return mustHost(denied).compare(mustHost(allowed)) <= 0
	case runValue:
		return strings.Contains(denied, "/")
	default:
		return valueCovers(kind, allowed, denied)
	}
}

// mustHost parses a host of a flag that Parse has accepted.
func mustHost(text string) host {
	h, err := ParseHost(text)
	if err != nil {
		panic(err)
	}
	return h
}

// Within says that path is dir or below it; both are absolute and clean.
func Within(path, dir string) bool {
	rest, below := strings.CutPrefix(path, dir)
	return below && (rest == "" || rest[0] == '/' || strings.HasSuffix(dir, "/"))
}
