//go:build unix

package executor

import (
	"net"
	"syscall"
)

// quiet says whether an idle connection is still open and has nothing to read.
// It looks without taking: a byte that nobody asked for, a close notification
// and an end all make the connection unusable. A connection that cannot be
// looked at is not reused.
func quiet(c net.Conn) bool {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	still := false
	err = rc.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		still = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true // never wait
	})
	return err == nil && still
}
