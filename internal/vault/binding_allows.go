package vault

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"chatelaine/internal/fault"
)

// allows compares the binding with the connection that was really made. Each
// part must be the same; the site file may only have narrowed: a deeper base
// path, fewer pins, or pins where the binding has none.
func (b Binding) allows(c Made) error {
	if kindRules[b.Kind].ssh {
		return notAllowed("kind of target", "SSH", "HTTPS")
	}
	if err := b.place().allows("", c); err != nil {
		return err
	}
	if !b.allowsPath(c.BasePath) {
		return notAllowed("base path", b.BasePath, c.BasePath)
	}
	return nil
}

// allowsToken compares the place of the exchange with the connection that was
// really made to it. Nothing may differ but the pins, which may be fewer.
func (b Binding) allowsToken(c Made) error {
	if b.Token == nil {
		return notAllowed("token place", "none", c.Host)
	}
	if err := b.Token.allows("token ", c); err != nil {
		return err
	}
	if b.Token.Path != c.BasePath {
		return notAllowed("token path", b.Token.Path, c.BasePath)
	}
	return nil
}

// allows compares all but the path. where is put before each part's name.
func (p Place) allows(where string, c Made) error {
	host := strings.ToLower(c.Host)
	switch {
	case p.Scheme != c.Scheme:
		return notAllowed(where+"scheme", p.Scheme, c.Scheme)
	case p.Host != host:
		return notAllowed(where+"host", p.Host, host)
	case p.Port != c.Port:
		return notAllowed(where+"port", p.Port, c.Port)
	case p.CADigest != c.CADigest:
		return notAllowed(where+"CA", p.CADigest, c.CADigest)
	}
	return p.allowsPins(where, c)
}

// allowsSSH compares the binding with an SSH connection whose host key is
// proved.
func (b Binding) allowsSSH(c MadeSSH) error {
	if !kindRules[b.Kind].ssh {
		return notAllowed("kind of target", "HTTPS", "SSH")
	}
	address := net.JoinHostPort(strings.Trim(b.Host, "[]"), strconv.Itoa(b.Port))
	switch {
	case address != strings.ToLower(c.Address):
		return notAllowed("address", address, c.Address)
	case b.User != c.User:
		return notAllowed("user", b.User, c.User)
	case !slices.Contains(b.HostKeys, c.HostKey):
		return notAllowed("host key", fingerprints(b.HostKeys), fingerprints([]string{c.HostKey}))
	}
	return nil
}

// FitsSite asks what a lease will say before there is one: whether the site file
// still names the destination that the secret is bound to, the place of its
// exchange, its constants, and how it is applied. The constants must be the same
// to the byte: what is fewer for one of them is more for another. That a peer
// will show a pinned key is taken for granted. now is what a put would bind to.
// It fails with TARGET_NOT_ALLOWED.
func (b Binding) FitsSite(now Binding) error {
	now = now.normal()
	switch {
	case b.Kind != now.Kind:
		return notAllowed("kind", b.Kind, now.Kind)
	case !strings.EqualFold(b.Header, now.Header):
		return notAllowed("header", b.Header, now.Header)
	case b.Prefix != now.Prefix:
		return notAllowed("prefix", b.Prefix, now.Prefix)
	case b.Username != now.Username:
		return notAllowed("user name", b.Username, now.Username)
	}
	if err := b.fitsParams(now); err != nil {
		return err
	}
	if (b.Token == nil) != (now.Token == nil) {
		return notAllowed("token place", b.Token.text(), now.Token.text())
	}
	if t := now.Token; t != nil {
		made := Made{Scheme: t.Scheme, Host: t.Host, Port: t.Port, BasePath: t.Path, CADigest: t.CADigest, Pins: t.Pins, PeerSPKI: b.Token.Pins}
		if err := b.allowsToken(made); err != nil {
			return err
		}
	}
	if kindRules[b.Kind].ssh {
		return b.fitsSSH(now)
	}
	return b.allows(Made{Scheme: now.Scheme, Host: now.Host, Port: now.Port, BasePath: now.BasePath, CADigest: now.CADigest, Pins: now.Pins, PeerSPKI: b.Pins})
}

func (b Binding) fitsParams(now Binding) error {
	for _, p := range b.Params {
		if v := now.Param(p.Name); v != p.Value {
			return notAllowed(p.Name, p.Value, v)
		}
	}
	for _, p := range now.Params {
		if v := b.Param(p.Name); v != p.Value {
			return notAllowed(p.Name, v, p.Value)
		}
	}
	return nil
}

// fitsSSH lets the site file name fewer host keys, not one more.
func (b Binding) fitsSSH(now Binding) error {
	if now.Scheme != b.Scheme {
		return notAllowed("scheme", b.Scheme, now.Scheme)
	}
	if len(now.HostKeys) == 0 {
		return notAllowed("host keys", fingerprints(b.HostKeys), "none")
	}
	for _, k := range now.HostKeys {
		c := MadeSSH{Address: net.JoinHostPort(strings.Trim(now.Host, "[]"), strconv.Itoa(now.Port)), User: now.User, HostKey: k}
		if err := b.allowsSSH(c); err != nil {
			return err
		}
	}
	return nil
}

func (p *Place) text() string {
	if p == nil {
		return "none"
	}
	return p.Scheme + "://" + net.JoinHostPort(strings.Trim(p.Host, "[]"), strconv.Itoa(p.Port)) + p.Path
}

func (b Binding) allowsPath(made string) bool {
	made = strings.TrimSuffix(made, "/")
	return cleanPath(made) && (made == b.BasePath || strings.HasPrefix(made, b.BasePath+"/"))
}

// allowsPins needs the peer itself to have shown a pinned key, whatever the
// site file says about pins.
func (p Place) allowsPins(where string, c Made) error {
	if len(p.Pins) == 0 {
		return nil
	}
	if len(c.Pins) == 0 {
		return notAllowed(where+"pins", len(p.Pins), 0)
	}
	for _, pin := range c.Pins {
		if !slices.Contains(p.Pins, pin) {
			return notAllowed(where+"pins", "the bound ones", "others")
		}
	}
	for _, k := range c.PeerSPKI {
		if slices.Contains(p.Pins, k) {
			return nil
		}
	}
	return notAllowed(where+"peer key", "a pinned one", "none of them")
}

// notAllowed is for the operator; it shows addresses and constants, which are no
// secret.
func notAllowed(part string, bound, made any) error {
	return fault.Newf(fault.TargetNotAllowed, "the identity is bound to another destination: %s is %.200q, bound %.200q; rebind the identity if that is meant",
		part, fmt.Sprint(made), fmt.Sprint(bound))
}
