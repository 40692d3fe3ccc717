package client

import (
	"context"
	"net"
	"net/netip"
)

// Who names the process that listens on a Unix socket, whoever it is: nothing is
// sent to it. pid is 0 where the system does not tell, as across containers.
func Who(ctx context.Context, socket string) (pid int, uid uint32, err error) {
	if err := checkSocketPath(socket); err != nil {
		return 0, 0, err
	}
	d := net.Dialer{Timeout: dialTimeout}
	c, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return 0, 0, plainDialError(err)
	}
	defer c.Close()
	uid, err = peerUID(c.(*net.UnixConn))
	if err != nil {
		return 0, 0, err
	}
	return peerPID(c.(*net.UnixConn)), uid, nil
}

// PortOwners are the users of every socket that takes connections to a loopback
// port, on either family. macOS does not tell.
func PortOwners(port int) ([]uint32, error) {
	var out []uint32
	for _, host := range []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()} {
		uids, err := portOwners(netip.AddrPortFrom(host, uint16(port)))
		if err != nil {
			return nil, err
		}
		out = append(out, uids...)
	}
	return out, nil
}
