package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"strconv"
	"syscall"
	"time"
)

// dialTimeout bounds the connect to a local socket, which takes microseconds;
// more means that the daemon hangs.
const dialTimeout = 5 * time.Second

// Owners are the users whom a socket may belong to. The zero value trusts
// nobody.
type Owners struct{ uids []uint32 }

// OwnAndRoot trusts the caller's own user and root.
func OwnAndRoot() Owners { return Owners{uids: []uint32{uint32(os.Getuid()), 0}} }

// With also trusts uid.
func (o Owners) With(uid uint32) Owners {
	return Owners{uids: append(append([]uint32{}, o.uids...), uid)}
}

// WithUser also trusts a user by name or by number, as an operator configures
// it.
func (o Owners) WithUser(name string) (Owners, error) {
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return o.With(uint32(n)), nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return Owners{}, fmt.Errorf("the daemon's user %q is not known on this machine", name)
	}
	n, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return Owners{}, fmt.Errorf("the daemon's user %q has no numeric id", name)
	}
	return o.With(uint32(n)), nil
}

func (o Owners) allow(uid uint32) bool {
	for _, u := range o.uids {
		if u == uid {
			return true
		}
	}
	return false
}

// dialSocket connects to a Unix socket and gives the connection away only if
// both the socket's file and the process that listens belong to a trusted user.
func dialSocket(ctx context.Context, path string, owners Owners) (net.Conn, error) {
	if err := checkSocketPath(path); err != nil {
		return nil, err
	}
	if err := checkSocketFile(path, owners); err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: dialTimeout}
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, plainDialError(err)
	}
	uid, err := peerUID(c.(*net.UnixConn))
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("cannot tell who listens: %w", err)
	}
	if !owners.allow(uid) {
		c.Close()
		return nil, &StrangerError{Where: path, UID: uid}
	}
	return c, nil
}

func checkSocketFile(path string, owners Owners) error {
	fi, err := os.Stat(path)
	if err != nil {
		return plainDialError(err)
	}
	if fi.Mode().Type() != fs.ModeSocket {
		return errors.New("the file there is not a socket")
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("the system does not tell who owns the socket")
	}
	if !owners.allow(st.Uid) {
		return &StrangerError{Where: path, UID: st.Uid}
	}
	return nil
}

// The three ordinary reasons for not reaching a daemon.
var (
	ErrNoSocket  = errors.New("there is no socket (is the daemon running?)")
	ErrNobody    = errors.New("nobody listens on the socket (the daemon has stopped)")
	ErrForbidden = errors.New("your user may not use this socket")
)

func plainDialError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ErrNoSocket
	case errors.Is(err, syscall.ECONNREFUSED):
		return ErrNobody
	case errors.Is(err, fs.ErrPermission):
		return ErrForbidden
	}
	return err
}
