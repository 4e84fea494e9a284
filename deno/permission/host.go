package permission

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"rillbox/cache/egress"
)

// host is a value of --allow-net, --allow-import and what denies them, as Deno
// 2.9.6 understands it: what counts is not how a value looks but what Deno makes
// of it, so that its parser (runtime/permissions/lib.rs) is followed step by
// step, errors included. String gives the one form that is compared and passed
// on.
type host struct {
	kind hostKind
	name string       // of a domain, small and without its last dot; a socket's path
	net  netip.Prefix // of an address or a network
	cid  uint32       // of a virtual machine's socket
	port int64        // anyPort for all
}

// hostKind is in the order in which Deno looks at values.
type hostKind int

const (
	domainHost hostKind = iota
	domainsHost
	addressHost
	vsockHost
	networkHost
	socketHost
)

// anyPort stands for all ports, and behind each in Deno's order.
const anyPort = math.MaxInt64

// domainChars are those of a domain's labels.
const domainChars = "abcdefghijklmnopqrstuvwxyz0123456789_-"

func ParseHost(text string) (host, error) {
	if strings.Contains(text, "://") {
		return host{}, fmt.Errorf("invalid value '%s': URLs are not supported, only domains and IPs", text)
	}
	if rest, ok := strings.CutPrefix(text, "vsock:"); ok {
		return parseVsock(text, strings.Split(rest, ":"))
	}
	if rest, ok := strings.CutPrefix(text, "unix:"); ok {
		if !path.IsAbs(rest) {
			return host{}, fmt.Errorf("invalid unix socket: '%s' (path must be absolute and non-empty)", text)
		}
		return host{kind: socketHost, name: path.Clean(rest), port: anyPort}, nil
	}
	if rest, ok := strings.CutPrefix(text, "["); ok {
		return parseBracketed(text, rest)
	}
	name, portText, hasPort := strings.Cut(text, ":")
	if hasPort && portText == "" {
		return host{}, fmt.Errorf("invalid empty port in '%s'", text)
	}
	h, err := parseName(name)
	if err != nil || !hasPort {
		return h, err
	}
	port, err := parseNumber(portText, 16)
	switch {
	case err != nil && strings.Contains(portText, ":"):
		return host{}, fmt.Errorf("ipv6 addresses must be enclosed in square brackets: '%s'", text)
	case err != nil:
		return host{}, fmt.Errorf("invalid port in '%s': '%s'", text, portText)
	}
	h.port = port
	return h, nil
}

func parseVsock(text string, parts []string) (host, error) {
	invalid := fmt.Errorf("invalid vsock: '%s'", text)
	if len(parts) < 2 { // what follows the port is dropped
		return host{}, invalid
	}
	if parts[0] == "-1" {
		parts[0] = "4294967295"
	}
	cid, err := parseNumber(parts[0], 32)
	port, portErr := parseNumber(parts[1], 32)
	if errors.Join(err, portErr) != nil {
		return host{}, invalid
	}
	return host{kind: vsockHost, cid: uint32(cid), port: port}, nil
}

// parseBracketed parses what follows an opening bracket.
func parseBracketed(text, rest string) (host, error) {
	inner, after, closed := strings.Cut(rest, "]")
	if !closed {
		return host{}, fmt.Errorf("invalid host: '%s'", text)
	}
	address, err := netip.ParseAddr(withoutZone(inner))
	if err != nil || address.Is4() {
		return host{}, fmt.Errorf("invalid IPv6 address in '%s': '%s'", text, inner)
	}
	h := addressOf(address)
	portText, hasPort := strings.CutPrefix(after, ":")
	switch {
	case after == "":
		return h, nil
	case !hasPort:
		return host{}, fmt.Errorf("invalid host: '%s'", text)
	}
	if h.port, err = parseNumber(portText, 16); err != nil {
		return host{}, fmt.Errorf("invalid port in '%s': '%s'", text, portText)
	}
	return h, nil
}

// parseName parses what stands before a port: an IPv4 address, a network or a
// domain.
func parseName(text string) (host, error) {
	undotted, dotted := strings.CutSuffix(text, ".")
	if address, err := netip.ParseAddr(withoutZone(undotted)); err == nil {
		if dotted {
			return host{}, fmt.Errorf("invalid host: '%s'", undotted)
		}
		return addressOf(address), nil
	}
	if network, ok := parseNetwork(text); ok {
		return host{kind: networkHost, net: network, port: anyPort}, nil
	}
	h := host{kind: domainHost, name: strings.Map(small, text), port: anyPort}
	if below, wild := strings.CutPrefix(h.name, "*."); wild {
		h.kind, h.name = domainsHost, below
	}
	h.name = strings.TrimSuffix(h.name, ".")
	if h.name == "" {
		return host{}, fmt.Errorf("invalid empty host: '%s'", text)
	}
	for label := range strings.SplitSeq(h.name, ".") {
		reason := ""
		switch {
		case label == "":
			reason = "empty label found in FQDN"
		case len(label) > 255:
			reason = "too long label found in FQDN"
		case strings.ContainsFunc(label, func(r rune) bool { return !strings.ContainsRune(domainChars, r) }):
			reason = "invalid char found in FQDN"
		default:
			continue
		}
		return host{}, fmt.Errorf("invalid host '%s': %s", text, reason)
	}
	return h, nil
}

// small makes a letter of ASCII small, and no other.
func small(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}

// parseNetwork parses "10.0.0.0/8", whose numbers may begin with zeros.
func parseNetwork(text string) (network netip.Prefix, ok bool) {
	address, bitsText, _ := strings.Cut(text, "/")
	bits, err := strconv.ParseUint(bitsText, 10, 8)
	octets := strings.Split(address, ".")
	if err != nil || len(bitsText) > 2 || bits > 32 || len(octets) != 4 {
		return network, false
	}
	var bytes [4]byte
	for i, octet := range octets {
		n, err := strconv.ParseUint(octet, 10, 8)
		if err != nil || len(octet) > 3 {
			return network, false
		}
		bytes[i] = byte(n)
	}
	return netip.PrefixFrom(netip.AddrFrom4(bytes), int(bits)).Masked(), true
}

// parseNumber is Rust's: a plus may precede, and zeros.
func parseNumber(text string, bits int) (int64, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "+"), 10, bits)
	return int64(n), err
}

// withoutZone drops what follows a percent sign, as Deno does wherever an
// address may stand.
func withoutZone(text string) string {
	address, _, _ := strings.Cut(text, "%")
	return address
}

func addressOf(address netip.Addr) host {
	address = address.Unmap()
	return host{kind: addressHost, net: netip.PrefixFrom(address, address.BitLen()), port: anyPort}
}

func (h host) String() string {
	var text string
	switch h.kind {
	case domainHost:
		text = h.name
	case domainsHost:
		text = "*." + h.name
	case addressHost:
		text = h.net.Addr().String()
		if h.net.Addr().Is6() {
			text = "[" + text + "]"
		}
	case vsockHost:
		text = fmt.Sprintf("vsock:%d", h.cid)
	case networkHost:
		text = h.net.String()
	case socketHost:
		text = "unix:" + h.name
	}
	if h.port != anyPort {
		text += ":" + strconv.FormatInt(h.port, 10)
	}
	return text
}

// covers says that every host and port of other is one of h: no port stands for
// all, "*.example.com" for example.com and all below, a network for its
// addresses.
func (h host) covers(other host) bool {
	return (h.port == anyPort || h.port == other.port) && h.holds(other)
}

// holds is covers without ports.
func (h host) holds(other host) bool {
	switch h.kind {
	case domainsHost:
		return (other.kind == domainHost || other.kind == domainsHost) && (other.name == h.name || strings.HasSuffix(other.name, "."+h.name))
	case networkHost:
		return (other.kind == addressHost || other.kind == networkHost) && other.net.Bits() >= h.net.Bits() && h.net.Contains(other.net.Addr())
	}
	h.port, other.port = anyPort, anyPort
	return h == other
}

// meets says that some host and port is one of both.
func (h host) meets(other host) bool {
	return (h.port == anyPort || other.port == anyPort || h.port == other.port) && (h.holds(other) || other.holds(h))
}

// compare gives the order in which Deno looks at values that meet: the first
// that holds what a guest wants decides.
func (h host) compare(other host) int {
	return cmp.Or(
		cmp.Compare(h.port, other.port),
		cmp.Compare(h.kind, other.kind),
		cmp.Compare(labels(h.name), labels(other.name)),
		h.net.Addr().Compare(other.net.Addr()),
		cmp.Compare(h.net.Bits(), other.net.Bits()),
	)
}

// labels is a domain as Deno compares it: each label behind its length.
func labels(name string) string {
	var b strings.Builder
	for label := range strings.SplitSeq(name, ".") {
		b.WriteByte(byte(len(label)))
		b.WriteString(label)
	}
	return b.String()
}

// HostCovers says that the granted value includes the other; what is not a host
// includes nothing and is in nothing.
func HostCovers(granted, value string) bool {
	g, err := ParseHost(granted)
	v, valueErr := ParseHost(value)
	return err == nil && valueErr == nil && g.covers(v)
}

// IsPlainHost says that a URL's host, with its port, is to Deno what it is as it is
// written: it turns letters beyond ASCII into others, and what ends in a number into
// an address.
func IsPlainHost(text string) bool {
	h, err := ParseHost(text)
	if err != nil || h.kind != domainHost {
		return err == nil && h.kind == addressHost
	}
	return !egress.IsNumber(h.name)
}

// cleanHosts gives what a value of a flag stands for, in the form that is passed
// on. ":80" stands for three hosts in the flags for the network. Denying loopback
// in one form denies it in all: a connection to the unspecified address ends
// there too, and so does one to a server that listens on both of its addresses.
func cleanHosts(flag, text string) ([]string, error) {
	values := []string{text}
	if portText, bare := strings.CutPrefix(text, ":"); bare && strings.HasSuffix(flag, "-net") {
		if port, err := parseNumber(portText, 16); err == nil {
			values = nil
			for _, name := range []string{"0.0.0.0", "127.0.0.1", "localhost"} {
				values = append(values, fmt.Sprintf("%s:%d", name, port))
			}
		}
	}
	var clean []string
	for _, value := range values {
		h, err := ParseHost(value)
		if err != nil {
			return nil, err
		}
		clean = append(clean, h.String())
		if !isAllow(flag) && slices.ContainsFunc(loopback, h.meets) {
			for _, form := range slices.Concat(loopback, unspecified) {
				form.port = h.port
				clean = append(clean, form.String())
			}
		}
	}
	return clean, nil
}

var (
	loopback = []host{
		{kind: networkHost, net: netip.MustParsePrefix("127.0.0.0/8"), port: anyPort},
		addressOf(netip.IPv6Loopback()),
		{kind: domainHost, name: "localhost", port: anyPort},
	}
	unspecified = []host{addressOf(netip.IPv4Unspecified()), addressOf(netip.IPv6Unspecified())}
)
