package loopback

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// nobody is the overflow uid: the kernel shows it for users of another
// namespace, so it names no one.
const nobody = 65534

// peerOf asks the kernel who connected.
func peerOf(c net.Conn) (Peer, error) {
	switch c := c.(type) {
	case *net.UnixConn:
		return unixPeer(c)
	case *net.TCPConn:
		return tcpPeer(c)
	}
	return Peer{}, fmt.Errorf("a %T has no peer", c)
}

func unixPeer(c *net.UnixConn) (Peer, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return Peer{}, err
	}
	var cred *unix.Ucred
	var bad error
	if err := raw.Control(func(fd uintptr) { cred, bad = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return Peer{}, err
	}
	if bad != nil {
		return Peer{}, bad
	}
	if cred.Pid == 0 || cred.Uid == nobody {
		return Peer{}, errors.New("the kernel names no process")
	}
	p := Peer{UID: cred.Uid, PID: int(cred.Pid)}
	p.Exe, _ = os.Readlink("/proc/" + strconv.Itoa(p.PID) + "/exe")
	return p, nil
}
