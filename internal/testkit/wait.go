package testkit

import (
	"math/rand/v2"
	"net"
	"os"
	"os/user"
	"strconv"
	"testing"
	"time"
)

// Patience bounds a wait for an event that is sure to come. Nothing but a
// failure takes so long, however busy the machine is.
const Patience = 2 * time.Minute

// lookEvery is the pause between two looks at a condition.
const lookEvery = 5 * time.Millisecond

// Until waits for a condition that has no event to wait for, such as a file that
// another process writes. It fails the test when patience ends; what says what
// did not come.
func Until(t testing.TB, what string, there func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !there(); time.Sleep(lookEvery) {
		if time.Now().After(end) {
			t.Fatalf("waited %s for %s", Patience, what)
		}
	}
}

// Ports that Linux and macOS give to nobody who did not ask for them by number:
// both hand out from 32768 upwards.
const (
	firstPort = 20000
	lastPort  = 31999
)

// FreePort finds a port that nobody holds on either loopback, for a program that
// cannot be told to choose one and say which. Connections and listeners that let
// the system choose never take it in between.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if free("127.0.0.1", port) && (free("::1", port) || !free("::1", 0)) {
			return port
		}
	}
	t.Fatalf("no port from %d to %d is free", firstPort, lastPort)
	return 0
}

// free says whether an address can be listened on; port 0 asks whether the
// machine has the address at all.
func free(host string, port int) bool {
	ln, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return false
	}
	_ = ln.Close()
	return true
}

// NamedUser fails the test where the user of this process has no name on this
// machine, as in a container that runs under a bare number: a D-Bus daemon talks
// to nobody whom it cannot look up, so a test that needs one cannot run.
func NamedUser(t testing.TB) {
	t.Helper()
	id := strconv.Itoa(os.Getuid())
	if _, err := user.LookupId(id); err != nil {
		t.Fatalf("user id %s has no name on this machine, and a D-Bus daemon refuses such users: run the tests as a user of /etc/passwd (%v)", id, err)
	}
}
