package loopback

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// callerRole makes this test's program a caller of the socket it names.
const callerRole = "LOOPBACK_TEST_CALL"

func init() {
	socket := os.Getenv(callerRole)
	if socket == "" {
		return
	}
	c, err := net.Dial("unix", socket)
	if err != nil {
		panic(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test has looked
	_ = c.Close()
	os.Exit(0)
}

func listenHere(t *testing.T) (socket string, ln net.Listener) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "chl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket = filepath.Join(dir, "a.sock")
	ln, err = ListenUnix(socket, 0o600, -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return socket, ln
}

func acceptPeer(t *testing.T, ln net.Listener) Peer {
	t.Helper()
	c, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	p, err := peerOf(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A caller that gives itself another name is shown as the program that it is.
func TestPeerIsNotWhatItCallsItself(t *testing.T) {
	socket, ln := listenHere(t)
	own, err := filepath.EvalSymlinks("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Args = []string{"/usr/bin/trusted-agent", "--harmless"}
	cmd.Env = []string{callerRole + "=" + socket}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := acceptPeer(t, ln)
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if p.PID != cmd.Process.Pid || p.UID != uint32(os.Getuid()) || p.Exe != own {
		t.Errorf("the peer is %+v; it is process %d, %s", p, cmd.Process.Pid, own)
	}
}

// A connection that is given to a child stays its maker's.
func TestPassedConnectionIsItsMakers(t *testing.T) {
	socket, ln := listenHere(t)
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	f, err := c.(*net.UnixConn).File()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	cmd.ExtraFiles = []*os.File{f}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = c.Close(), f.Close()
	p := acceptPeer(t, ln)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if p.PID != os.Getpid() {
		t.Errorf("the peer is process %d; %d made the connection, %d had it", p.PID, os.Getpid(), cmd.Process.Pid)
	}
}

// A caller that has ended is no program, and no other one in its place.
func TestEndedCallerIsNoProgram(t *testing.T) {
	socket, ln := listenHere(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{callerRole + "=" + socket}
	if err := cmd.Run(); err != nil { // its input is empty, so it ends at once
		t.Fatal(err)
	}
	if p := acceptPeer(t, ln); p.PID != cmd.Process.Pid || p.Exe != "" {
		t.Errorf("the peer is %+v; process %d had ended", p, cmd.Process.Pid)
	}
}
