package vault

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// childVariable makes this test binary play one of the parts of children, in a
// process of its own.
const childVariable = "VAULT_TEST_CHILD"

// children are what a child process may be; the arguments come after "--".
var children = map[string]func(args []string) error{}

func TestMain(m *testing.M) {
	name := os.Getenv(childVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	play, ok := children[name]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such child:", name)
		os.Exit(2)
	}
	if err := play(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child prepares a process that plays a part.
func child(t testing.TB, name string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(env, childVariable+"="+name)
	return cmd
}
