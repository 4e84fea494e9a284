package deno

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"rillbox/supervisor/launcher"
)

// Narrow gives the permissions of one run that asks for words only: what it
// allows must be covered by p, what p denies or ignores stays so. nil asks for
// all of p; an empty list for nothing. Where URL imports may go
// (--allow-import) stays p's unless words say otherwise, for it bounds fetching
// and not the guest.
func (p Permissions) Narrow(words []string) (Permissions, error) {
	if words == nil {
		return p, nil
	}
	asked, err := Parse(words)
	if err != nil {
		return Permissions{}, err
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
	if asked.all && len(asked.grants) > 0 { // as in Deno, -A outweighs other allow flags
		for name := range asked.grants {
			if isAllow(name) {
				delete(asked.grants, name)
			}
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
		mine.bare = mine.bare || g.bare
		mine.values = append(mine.values, g.values...)
		asked.grants[name] = mine
	}
	if asked.opened = p.opened; asked.opened != nil { // what it names has to be what was granted, too
		var opened []*os.File
		_, _, err := asked.places(launcher.Best.Offered(), &opened)
		for _, file := range opened {
			_ = file.Close()
		}
		if err != nil {
			return Permissions{}, err
		}
	}
	return asked.clone(), nil
}

func notGranted(flag string) error {
	return fmt.Errorf("permission %s was not granted by the operator: a run may narrow what was granted, never widen it; ask the operator to add it, or leave it out", flag)
}

// covers checks that every value of want is within what p allows.
func (p Permissions) covers(name string, want grant) error {
	kind := strings.TrimPrefix(name, "allow-")
	everything, values := p.Allowed(kind)
	if everything {
		return nil
	}
	if want.bare {
		return notGranted("--" + name)
	}
	for _, value := range want.values {
		covered := false
		for _, granted := range values {
			if valueCovers(permissionFlags[name], granted, value) {
				covered = true
				break
			}
		}
		if !covered {
			return notGranted("--" + name + "=" + value)
		}
	}
	return nil
}

func valueCovers(kind valueKind, granted, value string) bool {
	switch kind {
	case pathValue:
		return within(value, granted) // no link is followed below what is granted; see Permissions.open
	case hostValue:
		return hostCovers(granted, value)
	default:
		prefix, wildcard := strings.CutSuffix(granted, "*")
		return granted == value || wildcard && strings.HasPrefix(value, prefix)
	}
}

// within says that path is dir or below it; both are absolute and clean.
func within(path, dir string) bool {
	rest, below := strings.CutPrefix(path, dir)
	return below && (rest == "" || rest[0] == '/' || strings.HasSuffix(dir, "/"))
}

// resolved follows the symbolic links in as much of path as exists, since Deno
// grants what a link leads to.
func resolved(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolved(parent), filepath.Base(path))
}

// hostCovers says that the granted host (and port) includes the other. A grant
// without a port includes all ports, "*.example.com" all hosts below, a network
// ("10.0.0.0/8") its addresses.
func hostCovers(granted, value string) bool {
	if granted == value {
		return true
	}
	if strings.HasPrefix(granted, "unix:") || strings.HasPrefix(value, "unix:") {
		return false
	}
	grantedHost, grantedPort, err := splitHost(granted)
	if err != nil {
		return false
	}
	host, port, err := splitHost(value)
	if err != nil || grantedPort != "" && grantedPort != port {
		return false
	}
	if host == grantedHost {
		return true
	}
	if suffix, wildcard := strings.CutPrefix(grantedHost, "*"); wildcard {
		return strings.HasPrefix(suffix, ".") && strings.HasSuffix(host, suffix)
	}
	network, err := netip.ParsePrefix(grantedHost)
	if err != nil {
		return false
	}
	if inner, err := netip.ParsePrefix(host); err == nil {
		return inner.Bits() >= network.Bits() && network.Contains(inner.Addr())
	}
	address, err := netip.ParseAddr(host)
	return err == nil && network.Contains(address)
}

// splitHost splits "host", "host:port", "[v6]" and "[v6]:port".
func splitHost(s string) (host, port string, err error) {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		host, port, ok = strings.Cut(inner, "]")
		if !ok || port != "" && port[0] != ':' {
			return "", "", errors.New("unbalanced brackets")
		}
		return host, strings.TrimPrefix(port, ":"), nil
	}
	if strings.Count(s, ":") > 1 { // a bare IPv6 address
		return s, "", nil
	}
	host, port, _ = strings.Cut(s, ":")
	return host, port, nil
}
