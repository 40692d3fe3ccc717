package executor

import (
	"fmt"
	"net/netip"
)

// kind says what an address is to the check.
type kind uint8

const (
	kindGlobal   kind = iota // may be dialled
	kindLoopback             // only with the target's word
	kindPrivate              // only with the target's word
	kindNever                // never dialled
)

// special is one row of the registry.
type special struct {
	prefix netip.Prefix
	kind   kind
	what   string
}

func row(prefix string, k kind, what string) special {
	return special{netip.MustParsePrefix(prefix), k, what}
}

// specials are the IANA IPv4 and IPv6 Special-Purpose Address Registries
// (RFC 6890 and its updates), with multicast, and with the addresses at which
// clouds answer metadata: those hand out credentials, so that no word of the
// target opens them. The first row that holds an address decides, so single
// addresses stand before the blocks around them.
var specials = []special{
	row("169.254.0.0/16", kindNever, "link-local (RFC 3927), where cloud metadata answers"),
	row("100.100.100.200/32", kindNever, "cloud metadata"),
	row("168.63.129.16/32", kindNever, "cloud metadata"),
	row("192.0.0.192/32", kindNever, "cloud metadata"),
	row("fd00:ec2::/32", kindNever, "cloud metadata"),
	row("fd20:ce::254/128", kindNever, "cloud metadata"),

	row("0.0.0.0/8", kindNever, "this network (RFC 791)"),
	row("10.0.0.0/8", kindPrivate, "private (RFC 1918)"),
	row("100.64.0.0/10", kindPrivate, "shared address space (RFC 6598)"),
	row("127.0.0.0/8", kindLoopback, "loopback (RFC 1122)"),
	row("172.16.0.0/12", kindPrivate, "private (RFC 1918)"),
	row("192.0.0.0/24", kindNever, "protocol assignments (RFC 6890)"),
	row("192.0.2.0/24", kindNever, "documentation (RFC 5737)"),
	row("192.31.196.0/24", kindNever, "AS112 (RFC 7535)"),
	row("192.52.193.0/24", kindNever, "AMT (RFC 7450)"),
	row("192.88.99.0/24", kindNever, "6to4 relay (RFC 7526)"),
	row("192.168.0.0/16", kindPrivate, "private (RFC 1918)"),
	row("192.175.48.0/24", kindNever, "AS112 (RFC 7534)"),
	row("198.18.0.0/15", kindNever, "benchmarking (RFC 2544)"),
	row("198.51.100.0/24", kindNever, "documentation (RFC 5737)"),
	row("203.0.113.0/24", kindNever, "documentation (RFC 5737)"),
	row("224.0.0.0/4", kindNever, "multicast (RFC 5771)"),
	row("240.0.0.0/4", kindNever, "reserved (RFC 1112) or broadcast"),

	row("::1/128", kindLoopback, "loopback (RFC 4291)"),
	row("::/128", kindNever, "unspecified (RFC 4291)"),
	row("::/96", kindNever, "IPv4-compatible (RFC 4291)"),
	row("::ffff:0:0:0/96", kindNever, "IPv4-translated (RFC 2765)"),
	row("64:ff9b::/96", kindNever, "NAT64 (RFC 6052)"),
	row("64:ff9b:1::/48", kindNever, "local NAT64 (RFC 8215)"),
	row("100::/64", kindNever, "discard-only (RFC 6666)"),
	row("100:0:0:1::/64", kindNever, "dummy prefix (RFC 9780)"),
	row("2001::/32", kindNever, "Teredo (RFC 4380)"),
	row("2001::/23", kindNever, "protocol assignments (RFC 2928)"),
	row("2001:db8::/32", kindNever, "documentation (RFC 3849)"),
	row("2002::/16", kindNever, "6to4 (RFC 3056)"),
	row("2620:4f:8000::/48", kindNever, "AS112 (RFC 7534)"),
	row("3fff::/20", kindNever, "documentation (RFC 9637)"),
	row("5f00::/16", kindNever, "segment routing (RFC 9602)"),
	row("fc00::/7", kindPrivate, "unique local (RFC 4193)"),
	row("fe80::/10", kindNever, "link-local (RFC 4291)"),
	row("fec0::/10", kindNever, "site-local (RFC 3879)"),
	row("ff00::/8", kindNever, "multicast (RFC 4291)"),
}

// globalUnicast is all that IANA has given out for IPv6; what lies outside is
// special or unassigned.
var globalUnicast = netip.MustParsePrefix("2000::/3")

// classify says what an address is. An IPv4 address written in IPv6 is judged
// as the IPv4 address that the kernel would dial.
func classify(a netip.Addr) (kind, string) {
	if !a.IsValid() {
		return kindNever, "not an address"
	}
	if a.Zone() != "" {
		return kindNever, "zoned (RFC 4007)"
	}
	a = a.Unmap()
	for _, s := range specials {
		if s.prefix.Contains(a) {
			return s.kind, s.what
		}
	}
	if a.Is6() && !globalUnicast.Contains(a) {
		return kindNever, "outside global unicast (RFC 4291)"
	}
	return kindGlobal, ""
}

// checkAddr decides whether the target may be dialled at a. Plain http is for
// loopback alone. The error is for the operator and names the way out where
// there is one.
func checkAddr(to place, a netip.Addr) error {
	k, what := classify(a)
	if to.scheme == schemeHTTP && k != kindLoopback {
		return fmt.Errorf("%s is not loopback, and plain http is for loopback targets only", a)
	}
	switch k {
	case kindGlobal:
		return nil
	case kindLoopback:
		if to.allowLoopback {
			return nil
		}
		return fmt.Errorf("%s is %s; the target must say so (allow: [loopback])", a, what)
	case kindPrivate:
		if to.allowPrivate {
			return nil
		}
		return fmt.Errorf("%s is %s; the target must say so (allow: [private])", a, what)
	}
	return fmt.Errorf("%s is %s, which is never dialled", a, what)
}
