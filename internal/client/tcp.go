package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
)

// parseLoopback takes the agent listener's address: http, a loopback literal
// and a port, nothing else. Names are refused because a resolver decides them.
func parseLoopback(raw string) (netip.AddrPort, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return netip.AddrPort{}, errors.New("the agent address is not a URL")
	}
	if u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || (u.Path != "" && u.Path != "/") {
		return netip.AddrPort{}, fmt.Errorf("the agent address must be http://127.0.0.1:PORT or http://[::1]:PORT, not %q", raw)
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil || !ip.IsLoopback() || ip.Zone() != "" || ip.Is4In6() {
		return netip.AddrPort{}, fmt.Errorf("the agent address must be a loopback literal (127.0.0.1 or [::1]), not %q", u.Hostname())
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil || port == 0 {
		return netip.AddrPort{}, errors.New("the agent address needs a port: http://127.0.0.1:7317")
	}
	return netip.AddrPortFrom(ip, uint16(port)), nil
}

// dialLoopback connects and then asks the system who listens on that port, so
// that no token goes to a squatter.
func dialLoopback(ctx context.Context, addr netip.AddrPort, owners Owners) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	c, err := d.DialContext(ctx, "tcp", addr.String())
	if err != nil {
		return nil, plainDialError(err)
	}
	uids, err := portOwners(addr)
	if err == nil && len(uids) == 0 {
		err = errors.New("the system shows no listener on this port")
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("cannot tell who listens: %w; use the Unix socket", err)
	}
	for _, uid := range uids {
		if !owners.allow(uid) {
			c.Close()
			return nil, &StrangerError{Where: addr.String(), UID: uid}
		}
	}
	return c, nil
}
