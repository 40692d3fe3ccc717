package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// nobodyHere is a user id of nobody's: as root the test would see only its own
// rights.
const nobodyHere = 54321

// TestPassphraseProcessIsPrivate: from before a passphrase is read, the kernel
// treats the process as nobody's to look into. The program has run up to its
// prompt when it has taken the first bytes out of the pipe.
func TestPassphraseProcessIsPrivate(t *testing.T) {
	bin, err := programs["chatelaine"]()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(bin), 0o755); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	cmd := exec.Command(bin, "--runtime", "/nowhere", "--config", "/nowhere", "--state", "/nowhere", "unlock", "--passphrase-fd", "3")
	cmd.ExtraFiles = []*os.File{r}
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyHere, Gid: nobodyHere}}
	}
	if err := cmd.Start(); err != nil {
		if os.Getuid() == 0 {
			t.Logf("not tried: root cannot be another user here: %v", err)
			return
		}
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if _, err := w.WriteString("begun"); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(ptyTimeout); ; time.Sleep(5 * time.Millisecond) {
		left, err := unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ)
		if err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the program never read its descriptor")
		}
	}
	fi, err := os.Stat("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/environ")
	if err != nil {
		t.Fatal(err)
	}
	if uid := fi.Sys().(*syscall.Stat_t).Uid; uid != 0 {
		t.Errorf("its private files belong to user %d: another process of that user may read its memory", uid)
	}
}
