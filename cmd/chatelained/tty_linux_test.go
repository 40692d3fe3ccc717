package main_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"chatelaine/internal/testkit"
)

// Ctrl-C at a question ends the program, with the terminal as it was and nothing
// written.
func TestInterruptAtAQuestion(t *testing.T) {
	bin, err := servingBinary()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, prompt, typed string
	}{
		{"at the first", "New vault passphrase: ", ""},
		{"at the second", "Again: ", "a long passphrase\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			ptm, tty, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer ptm.Close()
			defer tty.Close() // held open, so that the settings can be looked at afterwards
			cmd := exec.Command(bin, "init", "--config", filepath.Join(home, "c"), "--state", filepath.Join(home, "s"), "--runtime", filepath.Join(home, "r"))
			cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
			cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			hung := time.AfterFunc(testkit.Patience, func() { _ = cmd.Process.Kill() })
			defer hung.Stop()
			readUntil(t, ptm, "New vault passphrase: ")
			if tc.typed != "" {
				_, _ = ptm.WriteString(tc.typed)
				readUntil(t, ptm, tc.prompt)
			}
			_, _ = ptm.WriteString("\x03")
			err = cmd.Wait()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 130 {
				t.Errorf("it ended with %v, want exit %d", err, 130)
			}
			if set, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS); err != nil || set.Lflag&unix.ECHO == 0 {
				t.Errorf("the echo is off afterwards (%v)", err)
			}
			readUntil(t, ptm, "chatelained: interrupted; nothing was changed")
			if left, _ := os.ReadDir(home); len(left) > 0 {
				t.Errorf("it left %v", left)
			}
		})
	}
}

// readUntil reads from the terminal until the text was shown.
func readUntil(t *testing.T, from io.Reader, text string) {
	t.Helper()
	var seen strings.Builder
	b := make([]byte, 1)
	for !strings.HasSuffix(seen.String(), text) {
		n, err := from.Read(b)
		seen.Write(b[:n])
		if err != nil {
			t.Fatalf("the terminal never showed %q but %q: %v", text, seen.String(), err)
		}
	}
}
