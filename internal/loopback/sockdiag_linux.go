package loopback

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// sock_diag (sock_diag(7), linux/inet_diag.h) tells the user of the other end
// of a loopback connection: the row whose source is the peer and whose
// destination is us.

const (
	sockDiagByFamily = 20 // SOCK_DIAG_BY_FAMILY
	inetDiagReqLen   = 56 // sizeof(struct inet_diag_req_v2)
	inetDiagMsgLen   = 72 // sizeof(struct inet_diag_msg)
	diagLimit        = 500 * time.Millisecond
)

// tcpPeer learns the uid only: which process holds a TCP socket cannot be known
// across users.
func tcpPeer(c *net.TCPConn) (Peer, error) {
	peer, okP := addrPort(c.RemoteAddr())
	self, okS := addrPort(c.LocalAddr())
	if !okP || !okS || !peer.Addr().IsLoopback() || !self.Addr().IsLoopback() {
		return Peer{}, errors.New("not a loopback connection")
	}
	uid, err := diagUID(peer, self)
	if err != nil {
		return Peer{}, fmt.Errorf("sock_diag: %w", err)
	}
	if uid == nobody {
		return Peer{}, errors.New("the kernel names no user")
	}
	return Peer{UID: uid}, nil
}

func addrPort(a net.Addr) (netip.AddrPort, bool) {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port()), true
}

func diagUID(src, dst netip.AddrPort) (uint32, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_INET_DIAG)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	tv := unix.NsecToTimeval(diagLimit.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return 0, err
	}
	if err := unix.Sendto(fd, diagRequest(src, dst), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	buf := make([]byte, os.Getpagesize())
	n, from, err := unix.Recvfrom(fd, buf, 0)
	if err != nil {
		return 0, err
	}
	if nl, ok := from.(*unix.SockaddrNetlink); !ok || nl.Pid != 0 {
		return 0, errors.New("an answer that is not the kernel's")
	}
	return diagAnswer(buf[:n], src, dst)
}

func diagRequest(src, dst netip.AddrPort) []byte {
	b := make([]byte, unix.SizeofNlMsghdr+inetDiagReqLen)
	ne := binary.NativeEndian
	ne.PutUint32(b[0:], uint32(len(b)))
	ne.PutUint16(b[4:], sockDiagByFamily)
	ne.PutUint16(b[6:], unix.NLM_F_REQUEST)
	r := b[unix.SizeofNlMsghdr:]
	r[0], r[1] = unix.AF_INET, unix.IPPROTO_TCP
	if src.Addr().Is6() {
		r[0] = unix.AF_INET6
	}
	ne.PutUint32(r[4:], ^uint32(0)) // every state: the answer's inode tells a dead one
	binary.BigEndian.PutUint16(r[8:], src.Port())
	binary.BigEndian.PutUint16(r[10:], dst.Port())
	copy(r[12:28], src.Addr().AsSlice())
	copy(r[28:44], dst.Addr().AsSlice())
	ne.PutUint64(r[48:], ^uint64(0)) // INET_DIAG_NOCOOKIE
	return b
}

// diagAnswer takes the uid of the one row that has all four parts of the
// connection and a live inode. A row of TIME_WAIT has inode 0 and is refused.
func diagAnswer(b []byte, src, dst netip.AddrPort) (uint32, error) {
	if len(b) < unix.SizeofNlMsghdr {
		return 0, errors.New("a short answer")
	}
	kind := binary.NativeEndian.Uint16(b[4:])
	if kind == unix.NLMSG_ERROR {
		return 0, errors.New("no such connection")
	}
	m := b[unix.SizeofNlMsghdr:]
	if kind != sockDiagByFamily || len(m) < inetDiagMsgLen {
		return 0, errors.New("an answer of another shape")
	}
	size := 4
	if m[0] == unix.AF_INET6 {
		size = 16
	}
	gotSrc, _ := netip.AddrFromSlice(m[8 : 8+size])
	gotDst, _ := netip.AddrFromSlice(m[24 : 24+size])
	same := gotSrc == src.Addr() && gotDst == dst.Addr() &&
		binary.BigEndian.Uint16(m[4:]) == src.Port() && binary.BigEndian.Uint16(m[6:]) == dst.Port()
	if !same {
		return 0, errors.New("the row of another connection")
	}
	if binary.NativeEndian.Uint32(m[68:]) == 0 {
		return 0, errors.New("a connection that no process holds")
	}
	return binary.NativeEndian.Uint32(m[64:]), nil
}
