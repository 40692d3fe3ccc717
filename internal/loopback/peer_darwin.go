//go:build darwin

package loopback

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// peerOf asks the kernel who connected. Here only Unix sockets can tell
// (LOCAL_PEERCRED, unix(4)); a TCP connection has no known user and is closed.
func peerOf(c net.Conn) (Peer, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return Peer{}, errors.New("the user of a TCP connection is not known on this system; use the socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return Peer{}, err
	}
	var cred *unix.Xucred
	var pid int
	var bad error
	err = raw.Control(func(fd uintptr) {
		cred, bad = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		if bad == nil {
			pid, _ = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
		}
	})
	if err != nil {
		return Peer{}, err
	}
	if bad != nil {
		return Peer{}, fmt.Errorf("peer credentials: %w", bad)
	}
	return Peer{UID: cred.Uid, PID: pid}, nil
}
