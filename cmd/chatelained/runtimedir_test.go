package main_test

import (
	"os"
	"testing"

	"chatelaine/internal/contracttest/upstream"
)

// Other users' agents must get to the socket through the folder, also through
// one that init made before the settings named them. What lies in it stays as
// narrow as it was.
func TestRuntimeFolderLetsOtherUsersThrough(t *testing.T) {
	t.Parallel()
	h := rig(t, func(upstream.Request) upstream.Answer { return upstream.JSON(200, "{}") })
	mode := func(path string) os.FileMode {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return st.Mode().Perm()
	}
	h.start()
	if m := mode(h.places.Runtime); m != 0o700 {
		t.Errorf("a daemon for one user: mode %o", m)
	}
	h.kill()
	h.write("c/chatelaine.yaml", "listen: {agent_tcp: off}\nagents: {users: [nobody]}\n")
	h.start()
	if m := mode(h.places.Runtime); m != 0o755 {
		t.Errorf("a daemon with other users' agents: mode %o", m)
	}
	if m := mode(h.places.OperatorSocket()); m != 0o600 {
		t.Errorf("the operator socket: mode %o", m)
	}
}
