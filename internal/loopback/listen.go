package loopback

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

var noDeadline time.Time

func deadline(d time.Duration) time.Time { return time.Now().Add(d) }

// dialTry is how long an existing socket gets to show that somebody serves it.
const dialTry = time.Second

// ListenUnix makes a socket with exactly this mode. A socket that somebody still
// serves is left alone and is an error; a left-over is replaced; anything that is
// not a socket is never removed.
func ListenUnix(path string, mode fs.FileMode, gid int) (net.Listener, error) {
	if err := clearSocket(path); err != nil {
		return nil, err
	}
	// The folder is private while the mode is set, so that nobody can connect
	// in between: it is made 0700 by whoever made the runtime folder, or the
	// umask closes the socket.
	old := syscall.Umask(0o177)
	ln, err := net.Listen("unix", path)
	syscall.Umask(old)
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	if gid >= 0 {
		if err := os.Chown(path, -1, gid); err != nil {
			_ = ln.Close()
			return nil, fmt.Errorf("socket %s: group %d: %w", path, gid, err)
		}
	}
	if err := os.Chmod(path, mode); err != nil {
		_ = ln.Close()
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	return ln, nil
}

func clearSocket(path string) error {
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("socket %s: %w", path, err)
	}
	if st.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("socket %s: something that is not a socket is there; move it away", path)
	}
	if c, err := net.DialTimeout("unix", path, dialTry); err == nil {
		_ = c.Close()
		return fmt.Errorf("socket %s: another daemon serves it; stop that one, or give --runtime %s", path, filepath.Join(filepath.Dir(path), "other"))
	}
	return os.Remove(path)
}

// ListenTCP holds 127.0.0.1 and, where the machine has it, ::1 on one port. It
// returns all listeners or none: with one of them free, another program could
// stand there and collect tokens.
func ListenTCP(ctx context.Context, port int) ([]net.Listener, error) {
	var lc net.ListenConfig // no SO_REUSEPORT, ever
	four, err := lc.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("127.0.0.1:%d is held by another program: %w", port, err)
	}
	port = four.Addr().(*net.TCPAddr).Port
	six, err := lc.Listen(ctx, "tcp6", net.JoinHostPort("::1", strconv.Itoa(port)))
	if err == nil {
		return []net.Listener{four, six}, nil
	}
	if noIPv6(err) {
		return []net.Listener{four}, nil
	}
	_ = four.Close()
	return nil, fmt.Errorf("[::1]:%d is held by another program: %w", port, err)
}

// noIPv6 says whether ::1 does not exist on this machine.
func noIPv6(err error) bool {
	return errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)
}
