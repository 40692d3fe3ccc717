package testkit

import (
	"net"
	"strconv"
	"testing"
)

func TestFreePort(t *testing.T) {
	port := strconv.Itoa(FreePort(t))
	ln, err := net.Listen("tcp4", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if free("127.0.0.1", ln.Addr().(*net.TCPAddr).Port) {
		t.Error("a port that is held is called free")
	}
}

func TestDeadPort(t *testing.T) {
	port := strconv.Itoa(DeadPort(t))
	if c, err := net.Dial("tcp4", "127.0.0.1:"+port); err == nil {
		c.Close()
		t.Error("somebody listens on a dead port")
	}
	if free("127.0.0.1", mustInt(t, port)) {
		t.Error("somebody else may listen on a dead port")
	}
}

func TestUntil(t *testing.T) {
	looks := 0
	Until(t, "the third look", func() bool { looks++; return looks == 3 })
	if looks != 3 {
		t.Errorf("%d looks", looks)
	}
}

func mustInt(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
