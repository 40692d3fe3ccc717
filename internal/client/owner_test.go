package client

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A socket of somebody else gets no byte.
func TestStrangersSocket(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "cl")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan int, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		n, _ := c.Read(make([]byte, 1))
		got <- n
	}()
	stranger := Owners{}.With(uint32(os.Getuid()) + 1)
	a, err := NewAgent(AgentOptions{Socket: path, Owners: stranger, Token: "planted"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Health(context.Background())
	var s *StrangerError
	if !errors.As(err, &s) || s.UID != uint32(os.Getuid()) || !strings.Contains(err.Error(), "nothing was sent") {
		t.Fatalf("error %v", err)
	}
	// The file's owner may lie where the folder is shared; the listener may not.
	if os.Getuid() == 0 {
		if err := os.Chown(path, 4242, -1); err != nil {
			t.Logf("not tried: root cannot give a file away here: %v", err)
			return
		}
		if _, err = dialSocket(context.Background(), path, Owners{}.With(4242)); !errors.As(err, &s) || s.UID != 0 {
			t.Fatalf("a stranger behind a chowned file: %v", err)
		}
		if n := <-got; n != 0 {
			t.Fatal("the stranger got a byte")
		}
	}
	if _, err := dialSocket(context.Background(), path, Owners{}); !errors.As(err, &s) {
		t.Errorf("the zero value trusts: %v", err)
	}
}

func TestPeerUID(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "cl")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	uid, err := peerUID(c.(*net.UnixConn))
	if err != nil || uid != uint32(os.Getuid()) {
		t.Fatalf("uid %d, %v", uid, err)
	}
	pid, uid, err := Who(t.Context(), filepath.Join(dir, "s"))
	if err != nil || uid != uint32(os.Getuid()) || pid != os.Getpid() {
		t.Errorf("who listens: process %d, user %d, %v", pid, uid, err)
	}
	if _, _, err := Who(t.Context(), filepath.Join(dir, "none")); !errors.Is(err, ErrNoSocket) {
		t.Errorf("a socket that is not there: %v", err)
	}
}

func TestOwnersByName(t *testing.T) {
	o, err := Owners{}.WithUser("root")
	if err != nil || !o.allow(0) || o.allow(1) {
		t.Errorf("root: %v, %v", o, err)
	}
	if o, err = (Owners{}).WithUser("4242"); err != nil || !o.allow(4242) {
		t.Errorf("4242: %v, %v", o, err)
	}
	for _, bad := range []string{"no-such-user-here", "-1", "4294967296", ""} {
		if _, err := (Owners{}).WithUser(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	own := OwnAndRoot()
	more := own.With(7)
	if own.allow(7) || !more.allow(7) || !more.allow(uint32(os.Getuid())) {
		t.Error("With changes its receiver")
	}
}

func TestLoopbackAddress(t *testing.T) {
	for _, good := range []string{"http://127.0.0.1:7317", "http://[::1]:7317/"} {
		if _, err := parseLoopback(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "127.0.0.1:7317", "https://127.0.0.1:7317", "http://localhost:7317", "http://127.0.0.1", "http://127.0.0.1:0",
		"http://10.0.0.1:7317", "http://0.0.0.0:7317", "http://[::]:1", "http://u@127.0.0.1:1", "http://127.0.0.1:1/x", "http://127.0.0.1:1?x", "http://127.1:80",
		"http://[::ffff:127.0.0.1]:80", "http://[::1%25lo]:80", "http://127.0.0.1:99999", "unix:///x"} {
		if _, err := NewAgent(AgentOptions{URL: bad, Owners: OwnAndRoot()}); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if _, err := NewAgent(AgentOptions{URL: "http://127.0.0.1:1", Socket: "/s"}); err == nil {
		t.Error("both socket and address were taken")
	}
}
