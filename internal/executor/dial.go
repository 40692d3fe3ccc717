package executor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"chatelaine/internal/fault"
)

const (
	schemeHTTP  = "http"
	schemeHTTPS = "https"

	// maxAddresses is how many addresses of one name are tried: enough for
	// two families with a few machines each, few enough that each gets a
	// fair share of the connect time-out.
	maxAddresses = 8
	// keepAliveProbe is the TCP keep-alive interval; it only serves to
	// notice a dead peer of an idle connection.
	keepAliveProbe = 15 * time.Second
)

// stop is why an attempt ended before an answer, and where.
type stop struct {
	phase string
	err   *fault.Error
}

func (s *stop) Error() string { return s.phase + ": " + s.err.Error() }

// stopped makes a stop; cause is for the operator.
func stopped(phase string, code fault.Code, cause error) *stop {
	return &stop{phase, fault.New(code, cause)}
}

// dialTCP resolves the target's host, checks every address and connects to the
// first that may be dialled and answers.
func (x *Executor) dialTCP(ctx context.Context, to place) (net.Conn, *stop) {
	ctx, cancel := context.WithTimeout(ctx, x.o.ConnectTimeout)
	defer cancel()
	if x.o.Dial != nil {
		conn, err := x.o.Dial(ctx, "tcp", net.JoinHostPort(to.host, strconv.Itoa(to.port)))
		if err != nil {
			return nil, stopped(PhaseConnect, fault.UpstreamUnavailable, err)
		}
		return conn, nil
	}
	addrs, st := x.addresses(ctx, to)
	if st != nil {
		return nil, st
	}
	return connectFirst(ctx, to, addrs)
}

// addresses returns what the host name stands for and may be dialled. Where a
// name has both allowed and forbidden addresses, only the allowed are tried;
// where it has none, nothing is opened.
func (x *Executor) addresses(ctx context.Context, to place) ([]netip.Addr, *stop) {
	found, err := x.lookup(ctx, to.host)
	if err != nil {
		return nil, stopped(PhaseResolve, fault.UpstreamUnavailable, fmt.Errorf("looking up %s: %w", to.host, err))
	}
	var allowed []netip.Addr
	var refused []error
	for _, a := range found {
		if err := checkAddr(to, a); err != nil {
			refused = append(refused, err)
			continue
		}
		allowed = append(allowed, a.Unmap())
	}
	switch {
	case len(allowed) == 0 && len(refused) > 0:
		return nil, stopped(PhaseResolve, fault.TargetNotAllowed, fmt.Errorf("%s: %w", to.host, errors.Join(refused...)))
	case len(allowed) == 0:
		return nil, stopped(PhaseResolve, fault.UpstreamUnavailable, fmt.Errorf("looking up %s: no address", to.host))
	}
	return allowed[:min(len(allowed), maxAddresses)], nil
}

// lookup finds the addresses of a host; a literal address is its own answer.
func (x *Executor) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	return x.o.Resolver.LookupNetIP(ctx, "ip", host)
}

// connectFirst tries the addresses in order, each with its share of the time
// that is left, and makes sure that the other end is the address it checked.
func connectFirst(ctx context.Context, to place, addrs []netip.Addr) (net.Conn, *stop) {
	var errs []error
	for i, a := range addrs {
		want := netip.AddrPortFrom(a, uint16(to.port))
		conn, err := connectOne(ctx, want, len(addrs)-i)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		got := remoteAddr(conn)
		if !got.IsValid() { // reset before it was looked at
			conn.Close()
			errs = append(errs, fmt.Errorf("connecting to %s: the connection is gone", want))
			continue
		}
		if got != want {
			conn.Close()
			return nil, stopped(PhaseConnect, fault.TargetNotAllowed, fmt.Errorf("dialled %s, reached %s", want, got))
		}
		return conn, nil
	}
	return nil, stopped(PhaseConnect, fault.UpstreamUnavailable, errors.Join(errs...))
}

// connectOne dials one literal address; share is how many are still to try.
func connectOne(ctx context.Context, to netip.AddrPort, share int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok && share > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(share))
		defer cancel()
	}
	d := net.Dialer{KeepAlive: keepAliveProbe, FallbackDelay: -1}
	return d.DialContext(ctx, "tcp", to.String())
}

// remoteAddr is the address at the other end, the zero value where it has no
// IP address.
func remoteAddr(c net.Conn) netip.AddrPort {
	t, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}
