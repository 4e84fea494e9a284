package egress

import "net/netip"

// special are the address blocks, beside those that netip itself knows, through
// which something of this machine or its network can be meant: see IANA's
// special-purpose address registries (RFC 6890 and its updates), and the IPv6
// forms that carry an IPv4 address.
//
// Not among them are the blocks for documentation (192.0.2.0/24,
// 198.51.100.0/24, 203.0.113.0/24, 2001:db8::/32) and benchmarks
// (198.18.0.0/15): no network has its hosts there, and transparent proxies let
// names resolve to them, so that every download would be refused behind one.
var special = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "240.0.0.0/4",
	"::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2002::/16", "5f00::/16", "fec0::/10",
)

// nat64 is how an IPv6-only network reaches IPv4 (RFC 6052): the last four bytes
// are the address that is meant.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

func prefixes(blocks ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, len(blocks))
	for i, block := range blocks {
		parsed[i] = netip.MustParsePrefix(block)
	}
	return parsed
}

// IsPublic says whether an address is of the public Internet, so that a guest
// may cause a connection to it.
func IsPublic(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if nat64.Contains(addr) {
		b := addr.As16()
		addr = netip.AddrFrom4([4]byte(b[12:]))
	}
	if !addr.IsGlobalUnicast() || addr.IsPrivate() {
		return false
	}
	for _, block := range special {
		if block.Contains(addr) {
			return false
		}
	}
	return true
}
